/** upload_text and upload_json: plan, bytes and finish in one call, for content that an agent has in hand. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import * as fields from '../../../../shared/contracts/fields.ts';
import { plans } from '../../../../shared/contracts/plans.ts';
import { failField } from '../../../../shared/errors.ts';
import { storeBytes } from '../../../../shared/lane.ts';
import { contextFor, defineTool, type ToolCall } from './tool.ts';

const policyFields = {
  ...fields.policyFields,
  operationId: fields.operationId.optional().describe('Your stable name for this upload. When you do not know whether a call succeeded, call again with the same operationId and arguments: the first share is answered and nothing is stored twice'),
};

const annotations = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false } as const;

const afterwards = [
  'Answers shareUrl and shareId: pass either to the receiver. deleteToken lets whoever has it delete the content before its expiry (DELETE /api/dl/{id} with header X-Delete-Token): keep it to yourself and never pass it on.',
  'Without policy arguments anyone who holds the link can fetch until it expires; maxUses: 1 makes it work once.',
  'For named agents only, give authMode "agent" and allowedAgentIds.',
].join(' ');

export const uploadText = defineTool({
  name: 'upload_text',
  title: 'Upload text',
  description: `Store text (a report, a log, code, CSV, Markdown) and get a share link to hand to another agent or person. Use upload_json for a JSON value. At most about 1 MB a call; larger or binary files go over HTTP, see POST /api/transfer-plan. ${afterwards}`,
  annotations,
  input: z.strictObject({
    text: z.string().min(1).refine((text) => text.isWellFormed(), 'must be well-formed text').describe('The content, kept exactly as it is, in UTF-8'),
    filename: fields.filename.default('text.txt').describe('The name that the receiver sees and saves under, without a path'),
    mimeType: fields.mimeType.default('text/plain; charset=utf-8').describe('The media type of the text, such as text/markdown or text/csv'),
    ...policyFields,
  }),
  output: fields.uploadResponse,
  run: async ({ text, ...file }, call) => store(call, Buffer.from(text), file),
});

export const uploadJson = defineTool({
  name: 'upload_json',
  title: 'Upload JSON',
  description: `Store a JSON value (an object, a list, anything) and get a share link to hand to another agent. The receiver gets the same value, every number as you wrote it. ${afterwards}`,
  annotations,
  input: z.strictObject({
    value: z.unknown().refine((value) => value !== undefined, 'is required').describe('The JSON value itself, not a string that contains JSON'),
    filename: fields.filename.default('value.json').describe('The name that the receiver sees and saves under, without a path'),
    mimeType: fields.mimeType.default('application/json').describe('A more specific media type, such as application/geo+json'),
    ...policyFields,
  }),
  output: fields.uploadResponse,
  run: async ({ value, ...file }, call) => store(call, Buffer.from(write(value)), file),
});

function write(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) throw failField('value', 'is nested too deeply');
    throw error;
  }
}

type File = z.output<z.ZodObject<typeof policyFields>> & { readonly filename: string; readonly mimeType: string };

/** The digest belongs to the plan, so that the same operation with other content is another request. */
async function store(call: ToolCall, bytes: Buffer, { operationId, ...file }: File) {
  const { bus } = call;
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const { planId, plan } = await bus.call(plans.planTransfer, { ...file, size: bytes.length, sha256, lane: 'single' }, contextFor(call, plans.planTransfer, operationId));
  const value = await storeBytes(call, { planId, plan, narrowing: {} }, bytes, contextFor(call, { accepts: [] }));
  return { value, share: { id: value.shareId, filename: file.filename } };
}
