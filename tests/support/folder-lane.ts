/** Folders as a client uses them: create, declare, send, complete, and wait until it is done. */
import { randomUUID } from 'node:crypto';
import type { Answer, Exchange, Uploaded } from './exchange.ts';

export interface Folder extends Uploaded {
  readonly folderId: string;
  readonly zipUrl: string;
}

export interface Declared {
  readonly fileId: string;
  readonly uploadId: string;
  readonly path: string;
  readonly partSize: number;
  readonly partCount: number;
  readonly maxParallelParts: number;
  readonly expiresAt: string;
}

/** Who fills a folder; without anything it is the holder of the delete token. */
export interface Sender {
  readonly bearer?: string | undefined;
  readonly token?: string | undefined;
}

export function folderLane({ call, must }: Exchange) {
  const as = (folder: Folder, { bearer, token = bearer === undefined ? folder.deleteToken : undefined }: Sender = {}) => ({ bearer, headers: { ...(token !== undefined && { 'x-delete-token': token }) } });

  async function create(fields: Record<string, unknown> = {}, bearer?: string): Promise<Folder> {
    return (await must('/api/folder', { json: { name: 'results', ...fields }, bearer })).json as Folder;
  }

  function declare(folder: Folder, fields: Record<string, unknown>, sender?: Sender): Promise<Answer> {
    return call(`/api/folder/${folder.folderId}/files`, { json: fields, ...as(folder, sender) });
  }

  async function mustDeclare(folder: Folder, path: string, size: number, sender?: Sender): Promise<Declared> {
    const answer = await declare(folder, { path, size, mimeType: 'text/plain' }, sender);
    if (answer.status !== 201) throw new Error(`declare ${path}: ${answer.text}`);
    return answer.json as Declared;
  }

  function part(folder: Folder, uploadId: string, partNumber: number, bytes: Uint8Array, sender?: Sender): Promise<Answer> {
    return call(`/api/upload/multipart/part?uploadId=${uploadId}&partNumber=${partNumber}`, { body: new Uint8Array(bytes), ...as(folder, sender) });
  }

  /** Declares a file and sends its parts; what is missing is to complete it. */
  async function send(folder: Folder, path: string, content: string | Buffer, sender?: Sender): Promise<Declared> {
    const bytes = Buffer.from(content);
    const declared = await mustDeclare(folder, path, bytes.length, sender);
    for (let number = 1; number <= declared.partCount; number += 1) {
      const answer = await part(folder, declared.uploadId, number, bytes.subarray((number - 1) * declared.partSize, number * declared.partSize), sender);
      if (answer.status !== 200) throw new Error(`part of ${path}: ${answer.text}`);
    }
    return declared;
  }

  function complete(folder: Folder, { fileId, uploadId }: Pick<Declared, 'fileId' | 'uploadId'>, operationId: string, sender?: Sender): Promise<Answer> {
    return call(`/api/folder/${folder.folderId}/upload-complete`, { json: { fileId, uploadId, operationId }, ...as(folder, sender) });
  }

  /** Polls until a command is done. */
  async function untilDone(folder: Folder, operationId: string, sender?: Sender): Promise<Record<string, any>> {
    for (;;) {
      const { json } = await must(`/api/folder/${folder.folderId}/upload-status?view=completion&operationId=${encodeURIComponent(operationId)}`, as(folder, sender));
      if (json.done) return json as Record<string, any>;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** A file that is ready. */
  async function add(folder: Folder, path: string, content: string | Buffer, sender?: Sender): Promise<Declared> {
    const declared = await send(folder, path, content, sender);
    const operationId = randomUUID();
    const accepted = await complete(folder, declared, operationId, sender);
    if (accepted.status !== 202) throw new Error(`complete ${path}: ${accepted.text}`);
    const done = await untilDone(folder, operationId, sender);
    if (done['state'] !== 'ready') throw new Error(`complete ${path}: ${JSON.stringify(done)}`);
    return declared;
  }

  /** A folder of ready files: path -> content. */
  async function fill(files: Record<string, string | Buffer>, fields: Record<string, unknown> = {}, bearer?: string): Promise<Folder> {
    const folder = await create(fields, bearer);
    for (const [path, content] of Object.entries(files)) await add(folder, path, content);
    return folder;
  }

  function list(folder: Folder, query = '', sender?: Sender): Promise<Answer> {
    return call(`/api/folder/${folder.folderId}${query}`, as(folder, sender));
  }

  return { as, create, declare, mustDeclare, part, send, complete, untilDone, add, fill, list };
}
