/** What a contract is: one request that a service answers, who may send it, and how it looks over HTTP. */
import type { z } from 'zod';
import type { ErrorCode } from './errors.ts';
import type { Logger } from './log.ts';

export const serviceNames = ['storage', 'policy', 'audit', 'importer'] as const;
export type ServiceName = (typeof serviceNames)[number];

/** The forms of credential a caller may present. Which endpoint accepts which is part of its contract. */
export type CredentialKind = 'agent_key' | 'access_token' | 'owner_session';

/**
 * A credential as the gateway read it from the request. Secrets are hashed before they leave the gateway,
 * so that neither a message nor a log can show one. `unknown` is a Bearer token of no known form.
 */
export type Credential =
  | { kind: 'agent_key'; keyId: string; secretHash: string }
  | { kind: 'owner_session'; sessionId: string; secretHash: string }
  | { kind: 'access_token'; token: string }
  | { kind: 'unknown' };

/** Who sent a request, after the policy service confirmed it. */
export type Caller =
  | { type: 'anonymous' }
  | { type: 'owner'; ownerId: string; sessionId: string }
  | { type: 'agent'; agentId: string; ownerId: string; keyId: string };

/** Whom what a caller makes belongs to; nobody when it is anonymous. */
export function creatorOf(caller: Caller): { ownerId: string | null; agentId: string | null } {
  switch (caller.type) {
    case 'owner': return { ownerId: caller.ownerId, agentId: null };
    case 'agent': return { ownerId: caller.ownerId, agentId: caller.agentId };
    case 'anonymous': return { ownerId: null, agentId: null };
  }
}

/** Kinds of requests that a caller has a limit each for. */
export const rateClasses = ['create', 'bytes', 'fetch', 'read', 'auth', 'page'] as const;
export type RateClass = (typeof rateClasses)[number];

/** How a contract looks over HTTP. Fields of the input are read from the path, the query and the body, in that order. */
export interface HttpShape {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With parameters in braces, as the interface writes them: `/api/share/{shareId}`. */
  readonly path: string;
  readonly status: number;
  /** Input fields that come from the query string. */
  readonly query?: readonly string[];
  /** Input fields that come from a request header: field -> header name. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `empty` when a request without a body is good: every field of the body is optional. */
  readonly body?: 'json' | 'empty';
  /** The gateway answers this one by a handler of its own (bytes, cookies); it is mounted by hand. */
  readonly handled?: true;
  /** Which of the caller's limits a request counts against; `read` for a GET and `create` for the rest when absent. */
  readonly rate?: RateClass;
  /** Shown in the interface description in place of a JSON body. */
  readonly requestType?: string;
  readonly responseType?: string;
  /** Other media types of the same answer, each a text of its own shape; only a `handled` contract has any. */
  readonly otherTypes?: readonly string[];
}

export interface Contract<Input extends z.ZodType = z.ZodType, Output extends z.ZodType = z.ZodType> {
  readonly service: ServiceName;
  readonly summary: string;
  /** The credentials that are accepted. None: the caller is not looked at. */
  readonly accepts: readonly CredentialKind[];
  /** The answer to a caller without any accepted credential; absent when none is needed. */
  readonly required?: ErrorCode;
  /** An input field that proves the caller's right by itself: when it is sent, no credential beside it is looked at. */
  readonly proof?: string;
  readonly http?: HttpShape;
  readonly input: Input;
  readonly output: Output;
  /** The codes this request can answer beside those that every request can. */
  readonly errors: readonly ErrorCode[];
  /** Takes an Idempotency-Key header or an `operationId` in its body. */
  readonly idempotent?: true;
  /** Milliseconds until the caller gives up; 5,000 when absent. */
  readonly deadlineMs?: number;
}

export type Contracts = Readonly<Record<string, Contract>>;

/** A contract together with the name it has in its file; the name is the last token of its subject. */
export type Named<C extends Contract = Contract> = C & { readonly name: string };

/** Declares one noun's contracts. Each key becomes the contract's name. */
export function defineContracts<const C extends Contracts>(contracts: C): { readonly [K in keyof C]: Named<C[K]> } {
  const named = Object.entries(contracts).map(([name, contract]) => [name, { ...contract, name }]);
  return Object.fromEntries(named) as { readonly [K in keyof C]: Named<C[K]> };
}

/** What every handler learns about the request beside its input. */
export interface RequestContext {
  readonly requestId: string;
  readonly traceparent: string;
  /** Milliseconds since 1970 after which nobody waits for the answer. */
  readonly deadline: number;
  /** The caller's network address, for the audit record. */
  readonly address?: string;
  /** The Idempotency-Key or operationId of the request. */
  readonly operationId?: string;
  readonly credential?: Credential;
}

export interface HandlerContext extends RequestContext {
  readonly caller: Caller;
  readonly log: Logger;
  /** Bytes that came with the request; small assets ride this way. */
  readonly bytes?: Uint8Array;
}

/** Key under which a handler's answer carries bytes beside its JSON. */
export const attachedBytes = Symbol('attached bytes');

export type InputOf<C extends Contract> = z.output<C['input']>;
export type OutputOf<C extends Contract> = z.input<C['output']>;
/** What a caller of the contract receives. */
export type AnswerOf<C extends Contract> = z.output<C['output']>;

export type Handler<C extends Contract> = (
  input: InputOf<C>,
  context: HandlerContext,
) => Promise<OutputOf<C> & { readonly [attachedBytes]?: Uint8Array }>;

/** One handler for each contract: a missing one is a compile error. */
export type Handlers<C extends Contracts> = { readonly [K in keyof C]: Handler<C[K]> };

/** The subject a contract is served on. Disjoint from the event subjects, so that no stream ever answers a request. */
export function subjectOf(contract: Named): string {
  return `aex.rpc.${contract.service}.${contract.name}`;
}
