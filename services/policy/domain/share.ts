/** A share and the questions its policy answers. */

/** A share as its row holds it. */
export interface Share {
  readonly id: string;
  readonly targetType: 'file' | 'pipe' | 'folder';
  readonly targetId: string;
  readonly filename: string;
  readonly mimeType: string;
  /** Null for a folder and a pipe. */
  readonly size: number | null;
  readonly mode: 'open' | 'agent';
  readonly allowedAgentIds: readonly string[];
  readonly maxUses: number | null;
  readonly uses: number;
  readonly metadata: Record<string, string>;
  readonly ownerId: string | null;
  readonly agentId: string | null;
  readonly expiresAt: Date;
  /** What the passcode is checked against; null when none is needed. */
  readonly passcodeHash: string | null;
}

/** Only agents on the allow list pass; matching is exact. */
export function allowsAgent(share: Share, agentId: string): boolean {
  return share.mode === 'agent' && share.allowedAgentIds.includes(agentId);
}

export function isExhausted(share: Share): boolean {
  return share.maxUses !== null && share.uses >= share.maxUses;
}

/** Undefined when only the expiry limits the share. */
export function remainingUses(share: Share): number | undefined {
  return share.maxUses === null ? undefined : Math.max(0, share.maxUses - share.uses);
}
