/** resolve_share: what a share holds and who may fetch it. */
import { shares } from '../../../../shared/contracts/shares.ts';
import { contextFor, defineTool, shareArgument } from './tool.ts';

export const resolveShare = defineTool({
  name: 'resolve_share',
  title: 'Look at a share',
  description: 'Read what a share holds (filename, mimeType, size, expiresAt) and its policy, before fetching. It spends nothing. policy.mode says how to fetch: "open" needs only the link, "agent" needs a one-time grant, which only the agents of policy.allowedAgentIds get. policy.passcodeRequired means that the sender has to tell you a passcode.',
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: shares.resolveShare.input.extend(shareArgument),
  output: shares.resolveShare.output,
  async run(input, call) {
    const value = await call.bus.call(shares.resolveShare, input, contextFor(call, shares.resolveShare));
    return { value, share: { id: value.id, filename: value.filename ?? value.id } };
  },
});
