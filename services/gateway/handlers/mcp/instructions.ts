/** The how-to that a client shows its model when it connects. */

export function instructionsFor(baseUrl: string): string {
  return `Hands files and JSON from one agent or person to another by a share link.

To send: upload_text or upload_json, then pass the shareUrl (or shareId) to the receiver. Keep deleteToken to yourself. For named agents only, set authMode "agent" and allowedAgentIds; for one fetch, maxUses 1. Choose ttl (seconds) as the duration of the workflow stage plus a margin. Give operationId, and repeat the call with the same one when you do not know whether it succeeded.

To receive: a shareUrl ends with its shareId (shr_…). resolve_share shows what it holds and who may fetch it. fetch_share reads small text and JSON in one call. For anything else: request_grant if policy.mode is "agent", then download_link, then send the HTTP request that it describes.

A grant works once, for about two minutes. Every retry of a fetch from an agent share takes a new grant.

A result with isError holds a JSON problem: code says what happened, detail what to do, retryable whether the same call may succeed later.

Binary and large files go over HTTP: ${baseUrl}/docs`;
}
