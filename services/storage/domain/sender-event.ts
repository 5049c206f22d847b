/** Events that a sender causes. Who that is was fixed when the plan was signed, whatever credential came with the request. */
import type { HandlerContext } from '../../../shared/contract.ts';
import { eventOf, type DomainEvent, type EventFacts } from '../../../shared/events.ts';
import type { Creator, NewTransfer } from './transfer.ts';
import type { Upload } from './upload.ts';

type Occasion = { readonly context: HandlerContext; readonly now: number };

function senderEvent({ context, now }: Occasion, { ownerId, agentId }: Creator, facts: EventFacts): DomainEvent {
  return { ...eventOf(context, now, { ...facts, ownerId, agentId }), actor: actorOf(ownerId, agentId) };
}

function actorOf(ownerId: string | null, agentId: string | null): DomainEvent['actor'] {
  if (agentId) return { type: 'agent', id: agentId };
  return ownerId ? { type: 'owner', id: ownerId } : { type: 'anonymous', id: null };
}

export function transferStored(occasion: Occasion, transfer: NewTransfer): DomainEvent {
  const { id, shareId, kind, size, lane } = transfer;
  return senderEvent(occasion, transfer, { eventType: 'transfer.stored', targetType: kind, targetId: id, shareId, data: { size, lane } });
}

export function uploadEvent(occasion: Occasion, eventType: 'upload.initialized' | 'upload.completed' | 'upload.aborted', upload: Pick<Upload, 'id' | 'lane' | 'transferId' | 'shareId' | 'size' | 'ownerId' | 'agentId'>): DomainEvent {
  const { id: uploadId, transferId, shareId, size, lane } = upload;
  return senderEvent(occasion, upload, { eventType, targetType: 'file', targetId: transferId, shareId, data: { uploadId, size, lane } });
}
