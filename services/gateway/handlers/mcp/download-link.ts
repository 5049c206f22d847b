/** download_link: the HTTP request that fetches a share's bytes. It spends nothing; that request does. */
import { z } from 'zod';
import * as fields from '../../../../shared/contracts/fields.ts';
import { shares } from '../../../../shared/contracts/shares.ts';
import { fail } from '../../../../shared/errors.ts';
import { readGrant } from '../../domain/credential.ts';
import { contextFor, defineTool, shareArgument } from './tool.ts';

export const downloadLink = defineTool({
  name: 'download_link',
  title: 'Get a download link',
  description: 'Get the HTTP request (url, method, headers) that downloads a share, for any size and type: send it with curl, fetch or the like, with all of headers. Asking spends nothing; sending the request spends one use of the share or the grant, so send it once. For an agent share call request_grant first and pass its accessToken as accessGrant. Use fetch_share instead to read small text or JSON right here.',
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: z.strictObject({
    ...shareArgument,
    accessGrant: z.string().max(1_024).optional().describe('The accessToken of request_grant, for agent shares only'),
  }),
  output: z.strictObject({
    url: z.string(),
    method: z.literal('GET'),
    headers: z.record(z.string(), z.string()).describe('Send all of them. They hold the grant: keep them to yourself'),
    expiresAt: fields.dateTime.describe('When the request stops working'),
    passcodeRequired: z.literal(true).optional().describe('Add the header X-Share-Passcode with the passcode that the sender told you'),
  }),
  async run({ shareId, accessGrant }, call) {
    const share = await call.bus.call(shares.describeShare, { shareId }, contextFor(call, shares.describeShare));
    if (share.remainingUses === 0) throw fail('share_use_limit_exceeded');
    const url = `${call.baseUrl}/api/dl/${share.targetId}`;
    const request = share.mode === 'open' ? { url: `${url}?share_id=${shareId}`, headers: {}, expiresAt: share.expiresAt } : { url, ...proof(share, accessGrant) };
    return { value: { ...request, method: 'GET' as const, ...(share.passcodeRequired && { passcodeRequired: true as const }) } };
  },
});

/** What a fetch from an agent share sends, and until when it works. */
function proof(share: { shareId: string; expiresAt: string }, accessGrant: string | undefined): { headers: Record<string, string>; expiresAt: string } {
  if (accessGrant === undefined) throw fail('grant_required', { detail: 'This share is for named agents. Call request_grant, and pass its accessToken as accessGrant.' });
  const grant = readGrant(accessGrant);
  if (grant.shareId !== share.shareId) throw fail('invalid_grant', { detail: 'This grant is for another share. Call request_grant with this shareId.' });
  return { headers: { 'X-Access-Grant': accessGrant }, expiresAt: new Date(Math.min(Date.parse(share.expiresAt), grant.exp * 1_000)).toISOString() };
}
