/** What a blob driver does: storage hands out tickets, the gateway opens them and moves the bytes. */
import type { Readable, Writable } from 'node:stream';
import type { ReadTicket, StoredSegment } from '../contracts/transfers.ts';
import type { WriteTicket, Written } from '../contracts/uploads.ts';

export type Segment = StoredSegment;

/** Milliseconds without a byte from the source after which it is given up. */
export const defaultIdleMs = 60_000;

export interface WriteOptions {
  /** Bytes that may come; the ticket's own bound holds as well. */
  readonly maxBytes?: number;
  /** Whether to compute SHA-256 while writing; crc32 always is. */
  readonly sha256: boolean;
  /** Milliseconds without a byte from the source after which it is given up; `defaultIdleMs` when absent. */
  readonly idleMs?: number;
}

export interface BlobWriter {
  /**
   * Writes a source to where its ticket says. When this resolves, the bytes survive a loss of power.
   * The source is never destroyed, so that a refusal can still be answered on the same connection.
   * @throws payload_too_large, deadline_exceeded for an idle source, upload_expired when the place is gone, or the source's own error.
   */
  write(ticket: WriteTicket, source: Readable, options: WriteOptions): Promise<Written>;
}

/** Bytes from `start` up to but not including `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** A blob that stays readable until it is closed, even when it is removed meanwhile. */
export interface OpenBlob {
  readonly size: number;
  /** Resolves when the sink has taken every byte, without ending it. Rejects when it closes early, when a read fails, or when the sink takes nothing for a minute (it is destroyed then). */
  pipe(range: ByteRange, sink: Writable): Promise<void>;
  close(): Promise<void>;
}

export interface BlobReader {
  open(ticket: ReadTicket): Promise<OpenBlob>;
}

/** A place in the store where bytes are to be written. */
export interface Slot {
  readonly key: string;
  readonly offset: number;
  readonly maxBytes: number;
  /** Bytes that will come, when that is known: an object store wants to know before the first. */
  readonly size?: number | undefined;
  /** The place is a part of a session of the object store. */
  readonly part?: SessionPart | undefined;
}

/** A part of an object that is put together in the object store. */
export interface SessionPart {
  readonly session: string;
  readonly partNumber: number;
}

/** A part as the object store has it. */
export interface StoredPart {
  readonly partNumber: number;
  readonly size: number;
  /** The store's own name for the bytes, without quotes. */
  readonly etag: string;
}

/** What only an object store does: an object cannot be written at an offset, so large ones are put together from parts. */
export interface ObjectStore {
  /** Begins to put an object together and answers the session. */
  begin(key: string): Promise<string>;
  /** Ends a session without an object. */
  cancel(key: string, session: string): Promise<void>;
  /** The parts that have arrived, in their order. Undefined when there is no such session. */
  listParts(key: string, session: string): Promise<StoredPart[] | undefined>;
  /**
   * Makes the parts one object; again does no harm.
   * @throws upload_state_conflict when a part is not the one that is named, upload_expired when the store has given the session up
   */
  complete(key: string, session: string, parts: readonly StoredPart[]): Promise<void>;
  /** Makes one object of many pieces and answers it. The pieces stay. */
  join(segments: readonly Segment[], key: string): Promise<Segment>;
  /** An address to which the gateway puts exactly so many bytes soon. */
  signWrite(key: string, size: number, part?: SessionPart): Promise<string>;
  /** An address to which a client outside puts exactly so many bytes within `seconds`. */
  signPartForClient(key: string, size: number, part: SessionPart, seconds: number): Promise<string>;
  /** An address from which the gateway reads soon. It is never told to a client. */
  signRead(key: string): Promise<string>;
}

export interface BlobStore {
  /** Makes the place ready and answers the ticket for it. Only storage makes places, so nothing exists that its table does not know. */
  ticketToWrite(slot: Slot): Promise<WriteTicket>;
  /** Says where pieces are to be read. */
  ticketToRead(segments: readonly Segment[]): Promise<ReadTicket>;
  /** Removes a blob; one that is not there is good too. */
  remove(key: string): Promise<void>;
  /** Milliseconds since 1970 of the last write, undefined when there is no such blob. */
  lastTouched(key: string): Promise<number | undefined>;
  /** SHA-256 of the segments in their order, in hexadecimal. */
  hash(segments: readonly Segment[]): Promise<string>;
  /** Absent where pieces share a file. */
  readonly objects?: ObjectStore;
}

export type BlobDriver = BlobWriter & BlobReader & BlobStore;
