/** GET /api/folder/{folderId}/zip, storage's part: what the archive holds, its entries page by page, and the record of it. */
import { attachedBytes, type Handler } from '../../../shared/contract.ts';
import type { folders } from '../../../shared/contracts/folders.ts';
import { fail } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import type { Deps } from '../deps.ts';
import type { ArchiveEntry } from '../store/folders.ts';

/** A page ends behind so many bytes of files, that no ticket waits for long, and so many pieces of files, that it fits a message. */
const pageBytes = 1_024 ** 3;
const pageSegments = 2_000;

export const zipFolder = ({ store }: Deps): Handler<typeof folders.zipFolder> =>
  async function zipFolder({ folderId }) {
    const archive = await store.openArchive(folderId);
    if (!archive) throw fail('folder_not_found');
    const { places, createdAt, ...facts } = archive;
    return { ...facts, createdAt: createdAt.toISOString(), [attachedBytes]: places };
  };

export const listArchive = ({ store, blobs }: Deps): Handler<typeof folders.listArchive> =>
  async function listArchive({ folderId, places, withTickets }) {
    const found = await store.listArchive({ folderId, places, live: withTickets });
    const page = withTickets ? firstThatFit(found) : found;
    return {
      entries: await Promise.all(page.map(async ({ place, name, size, crc32, readyAt, segments }) => ({
        place, name, size, readyAt: readyAt.toISOString(),
        ...(crc32 !== null && { crc32 }),
        ...(withTickets && segments && { ticket: await blobs.ticketToRead(segments) }),
      }))),
    };
  };

/** At least one. */
function firstThatFit(entries: readonly ArchiveEntry[]): readonly ArchiveEntry[] {
  let bytes = 0;
  let segments = 0;
  const end = entries.findIndex((entry, index) => {
    bytes += entry.size;
    segments += entry.segments?.length ?? 0;
    return index > 0 && (bytes > pageBytes || segments > pageSegments);
  });
  return end === -1 ? entries : entries.slice(0, end);
}

/** Nothing was changed by it, so the record is best effort. The fetch that it belongs to says who fetched. */
export const recordArchive = ({ store, clock, publish }: Deps): Handler<typeof folders.recordArchive> =>
  async function recordArchive({ folderId, fetchId, entries, whole }, context) {
    const folder = await store.findTransfer(folderId);
    if (!folder) return {};
    const { shareId, ownerId } = folder;
    const event = eventOf(context, clock(), {
      eventType: 'folder.zipped', targetType: 'folder', targetId: folderId, shareId, ownerId, outcome: whole ? 'allowed' : 'error', data: { fetchId, entries },
    });
    publish({ ...event, actor: { type: 'service', id: 'gateway' } });
    return {};
  };
