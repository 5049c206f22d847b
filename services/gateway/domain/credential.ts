/** The form of a caller's credential, read from the request. Whom it belongs to is for the policy service to say (interface chapter: Authentication). */
import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import type { Credential } from '../../../shared/contract.ts';
import { fail } from '../../../shared/errors.ts';
import { hashSecret } from '../../../shared/tokens.ts';

const keyForm = /^(agk|aos)_([A-Za-z0-9]{1,64})\.([A-Za-z0-9_-]{1,128})$/;

/** Reads one token. The secret part is hashed here, so that it goes no further than this process. */
export function readToken(token: string): Credential {
  const [, kind, id, secret] = keyForm.exec(token) ?? [];
  if (kind === 'agk') return { kind: 'agent_key', keyId: id!, secretHash: hashSecret(secret!) };
  if (kind === 'aos') return { kind: 'owner_session', sessionId: id!, secretHash: hashSecret(secret!) };
  if (token.startsWith('aat_') && token.length <= 4_096) return { kind: 'access_token', token };
  return { kind: 'unknown' };
}

/** Everything that looks like one of our tokens or like a signed plan. An anonymous upload is its id's holder's, and TUS has that id in its address. */
const tokenForms = /\b(agk|aos|aat|agrt|dlt|mpu)_[\w.~%-]{8,}|\b(eyJ)[\w-]+\.[\w-]+\.[\w-]+/g;

/**
 * Promise: no token is repeated in an answer or a log, wherever its holder put it: in a path, a field's name, a request id.
 * A password has no form to be known by.
 */
export function hideTokens(text: string): string {
  return text.replace(tokenForms, (_token, prefix?: string) => (prefix ? `${prefix}_…` : 'eyJ…'));
}

/** Reads an Authorization header; anything but one Bearer token is a credential of no known form. */
export function readAuthorization(header: string): Credential {
  const [, token] = /^Bearer +([^\s,]+) *$/i.exec(header) ?? [];
  return token ? readToken(token) : { kind: 'unknown' };
}

/** @throws invalid_grant for what cannot be a grant's token */
export function checkGrantForm(grant: string): void {
  if (grant.length > 1_024 || !grant.startsWith('agrt_')) throw fail('invalid_grant');
}

/** What a grant's holder can read of it, `exp` in seconds since 1970. Whether it is true, the policy service says when it is spent. */
const grantClaims = z.object({ shareId: z.string(), exp: z.int().max(8.64e12) });

/** @throws invalid_grant */
export function readGrant(grant: string): z.output<typeof grantClaims> {
  checkGrantForm(grant);
  try {
    return grantClaims.parse(JSON.parse(Buffer.from(grant.slice('agrt_'.length).split('.', 1)[0]!, 'base64url').toString('utf8')));
  } catch {
    throw fail('invalid_grant');
  }
}

/**
 * The passcode of a fetch, from its header. HTTP reads header bytes as Latin-1; most clients send UTF-8, some Latin-1.
 * What is too long for any passcode is cut, and stays too long.
 */
export function readPasscode(header: string): string {
  const bytes = Buffer.from(header, 'latin1');
  return (isUtf8(bytes) ? bytes.toString('utf8') : header).slice(0, 600);
}

/** The session cookie's name: the browser binds `__Host-` names to this very origin, but only over https. */
export function sessionCookieName(baseUrl: string): string {
  return baseUrl.startsWith('https:') ? '__Host-aex_session' : 'aex_session';
}

/** The value of one cookie of a Cookie header. */
export function readCookie(header: string, name: string): string | undefined {
  for (const pair of header.split(';')) {
    const [key, ...value] = pair.trim().split('=');
    if (key === name) return value.join('=');
  }
  return undefined;
}

/** A Set-Cookie header for the session; without a token it clears the cookie. `seconds` until it ends. */
export function sessionCookie(baseUrl: string, token: string, seconds: number): string {
  return setCookie(baseUrl, sessionCookieName(baseUrl), token, seconds);
}

function setCookie(baseUrl: string, name: string, value: string, seconds: number): string {
  const secure = baseUrl.startsWith('https:') ? '; Secure' : '';
  return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`;
}

/** The cookie of a sign-in that is under way at the provider. */
export function flowCookieName(baseUrl: string): string {
  return baseUrl.startsWith('https:') ? '__Host-aex_oidc' : 'aex_oidc';
}

/** A Set-Cookie header for it. Lax: the provider's page sends the browser back to us. */
export function flowCookie(baseUrl: string, flow: string, seconds: number): string {
  return setCookie(baseUrl, flowCookieName(baseUrl), flow, seconds);
}

/** What a browser says of where a request came from. */
export interface RequestOrigin {
  readonly origin?: string | undefined;
  readonly fetchSite?: string | undefined;
  readonly host?: string | undefined;
}

/** Whether a request that carries the session cookie came from our own pages. A request that does not say so did not. */
export function isSameOrigin(from: RequestOrigin, baseUrl: string): boolean {
  const own = new URL(baseUrl);
  if (from.fetchSite !== undefined) return from.fetchSite === 'same-origin';
  return from.origin !== undefined && from.origin === own.origin;
}
