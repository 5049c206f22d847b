/** A command to complete a file: what was asked, how it stands, and when it is tried again (interface chapter: Folders). */
import type { Caller } from '../../../shared/contract.ts';
import { errorTable, fail, Failure, type ErrorCode } from '../../../shared/errors.ts';

export interface Command {
  readonly folderId: string;
  readonly operationId: string;
  readonly fileId: string;
  readonly uploadId: string;
}

export interface Completion extends Command {
  readonly state: 'accepted' | 'running' | 'ready' | 'failed';
  readonly attempts: number;
  readonly error: { readonly code: ErrorCode; readonly detail: string } | null;
  /** The request that brought the command, for the record of what it does. */
  readonly request: { readonly requestId: string; readonly traceparent: string; readonly address?: string };
}

/** Promise: an operation id belongs to the first command that came with it. */
export function checkSame(completion: Completion, { fileId, uploadId }: Command): void {
  if (completion.fileId !== fileId || completion.uploadId !== uploadId) throw fail('idempotency_key_reused');
}

export function isDone({ state }: Pick<Completion, 'state'>): boolean {
  return state === 'ready' || state === 'failed';
}

/** What a command does, it does as its sender, who is known from the upload. */
export function contextOf({ request }: Completion): Completion['request'] & { deadline: number; caller: Caller } {
  return { ...request, deadline: 0, caller: { type: 'anonymous' } };
}

/** Why a command has failed for good; undefined when it may succeed later: an outage, or something that nobody foresaw. */
export function finalError(error: unknown): Completion['error'] | undefined {
  if (!(error instanceof Failure) || errorTable[error.code].retryable) return undefined;
  return { code: error.code, detail: error.message };
}

/** Seconds until the next attempt. */
export function pauseAfter(attempts: number): number {
  return Math.min(0.25 * 2 ** attempts, 30);
}
