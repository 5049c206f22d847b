/** request_grant: a one-time grant for an agent share. */
import * as fields from '../../../../shared/contracts/fields.ts';
import { grants } from '../../../../shared/contracts/grants.ts';
import { contextFor, defineTool, shareArgument } from './tool.ts';

export const requestGrant = defineTool({
  name: 'request_grant',
  title: 'Request a one-time grant',
  description: 'Get the grant that one fetch from an agent share takes (policy.mode "agent"). It works once and for about two minutes: request it right before the fetch, and a new one for every retry, also after invalid_grant or grant_already_used. Needs your agent key, and your agent id on the allow list of the share. Open shares need no grant, and fetch_share requests its own. Pass accessToken to download_link as accessGrant.',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  input: grants.issueGrant.input.extend({ ...shareArgument, operationId: fields.operationId.optional().describe('Your stable name for this request: the same again answers the same grant, used or not. Never reuse it to retry a fetch') }),
  output: grants.issueGrant.output,
  async run({ operationId, ...input }, call) {
    return { value: await call.bus.call(grants.issueGrant, input, contextFor(call, grants.issueGrant, operationId)) };
  },
});
