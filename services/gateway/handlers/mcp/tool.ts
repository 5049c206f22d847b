/** What a tool is, and how its outcome is told: the same JSON as a value and as text. */
import type { CallToolResult, ToolAnnotations } from '@modelcontextprotocol/server';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { BlobReader, BlobWriter } from '../../../../shared/blobs/blobs.ts';
import type { Contract } from '../../../../shared/contract.ts';
import { shareId } from '../../../../shared/contracts/fields.ts';
import type { Failure } from '../../../../shared/errors.ts';
import type { Bus, CallContext } from '../../../../shared/rpc.ts';
import { contextOf } from '../../context.ts';
import { instanceOf, problemBody } from '../../problem.ts';
import type { Uses } from '../../uses.ts';

/** What tools take beside the words of the contracts. */
export const shareArgument = { shareId: shareId.describe('The id of the share, shr_…; its shareUrl ends with it') };

export interface ToolDeps {
  readonly bus: Bus;
  readonly uses: Uses;
  readonly blobs: BlobReader & BlobWriter;
  readonly baseUrl: string;
}

/** One call of a tool: what it may use, and the request it came with. */
export interface ToolCall extends ToolDeps {
  readonly request: FastifyRequest;
}

export interface Tool<Input extends z.ZodType = z.ZodType, Output extends z.ZodType = z.ZodType> {
  readonly name: string;
  readonly title: string;
  /** Read by a language model that has never seen this service: when to use it, and what to mind. */
  readonly description: string;
  readonly annotations: ToolAnnotations;
  readonly input: Input;
  readonly output: Output;
  run(input: z.output<Input>, call: ToolCall): Promise<Told<z.input<Output>>>;
}

export interface Told<Value> {
  readonly value: Value;
  /** The share that the answer is about. */
  readonly share?: { readonly id: string; readonly filename: string };
}

/** Gives a tool its types; what is listed and called needs them no more. */
export function defineTool<const I extends z.ZodType, const O extends z.ZodType>(tool: Tool<I, O>): Tool {
  return tool as unknown as Tool;
}

/** The context of a call that a tool makes for its caller. The credential is read as the REST endpoint of the contract reads it. */
export function contextFor({ request, baseUrl }: ToolCall, { accepts }: Pick<Contract, 'accepts'>, operationId?: string): CallContext {
  return { ...contextOf(request, { accepts }, baseUrl), ...(operationId !== undefined && { operationId }) };
}

/** A good outcome. The link is to the share's page, which spends nothing. */
export function tell({ value, share }: Told<unknown>, baseUrl: string): CallToolResult {
  const link = share && { type: 'resource_link' as const, uri: `${baseUrl}/s/${share.id}`, name: share.filename, description: 'The page of the share; looking at it spends nothing', mimeType: 'text/html' };
  return { content: [{ type: 'text', text: JSON.stringify(value) }, ...(link ? [link] : [])], structuredContent: value as Record<string, unknown> };
}

/** A refusal: the problem document that the REST endpoint answers. As text only, since a structured value would have to match the tool's output. */
export function tellFailure(failure: Failure, { request, baseUrl }: ToolCall): CallToolResult {
  const { retryAfter } = failure.details;
  const problem = { ...problemBody(failure, { baseUrl, requestId: request.id, instance: instanceOf(request) }), ...(retryAfter !== undefined && { retryAfter }) };
  return { isError: true, content: [{ type: 'text', text: JSON.stringify(problem) }] };
}
