/** Every way to make a share, behind one function each: what comes after it is the same for all. */
import type { Answer, Exchange, Uploaded } from './exchange.ts';
import { folderLane, type Folder } from './folder-lane.ts';
import { mcpOf } from './mcp.ts';
import { multipartLane } from './multipart-lane.ts';
import { makePipe, sendAll } from './pipes.ts';
import { readZip } from './read-zip.ts';
import { toldShare, tusLane } from './tus-lane.ts';

/** The policy fields of a creation request, as JSON spells them. */
type PolicyFields = Record<string, unknown>;

export interface Wish {
  readonly policy?: PolicyFields;
  readonly bearer?: string | undefined;
  /** Idempotency-Key. */
  readonly key?: string;
}

export interface WayIn {
  readonly name: string;
  readonly type: 'file' | 'pipe' | 'folder';
  /** Stores the content, which is text, and answers the Upload response. Throws when it is refused, with the answer's text. */
  create(content: Buffer, wish: Wish): Promise<Uploaded>;
  /** What a fetch of the whole share holds of the content; the content itself when absent. */
  contentOf?(fetched: Buffer): Buffer;
}

/** What the ways need beside the exchange. */
export interface Surroundings {
  /** Shows a content at an address that may be imported; the same address each time. */
  serve(content: Buffer): string;
  /** The same exchange at a gateway that has the retired surfaces switched on. */
  legacy(): Exchange;
}

const filename = 'way.txt';
const mimeType = 'text/plain';

const keyHeader = (key: string | undefined): Record<string, string> => (key === undefined ? {} : { 'Idempotency-Key': key });
const file = (content: Buffer, { policy }: Wish) => ({ filename, mimeType, size: content.length, ...policy });

/** How forms and metadata spell a policy. */
function spellOut(policy: PolicyFields = {}): [string, string][] {
  return Object.entries(policy).map(([field, value]) => [
    field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    Array.isArray(value) ? value.join(',') : typeof value === 'object' ? JSON.stringify(value) : String(value),
  ]);
}

export function waysIn(exchange: Exchange, { serve, legacy }: Surroundings): WayIn[] {
  return [...lanes(exchange), importing(exchange, serve), ...byMcp(exchange), folder(exchange), pipe(exchange), form(legacy), resumable(legacy)];
}

function lanes(exchange: Exchange): WayIn[] {
  const { must } = exchange;
  const lane = multipartLane(exchange);

  async function planned(content: Buffer, wish: Wish, name: string) {
    const json = { ...file(content, wish), lane: name };
    return (await must('/api/transfer-plan', { bearer: wish.bearer, headers: keyHeader(wish.key), json })).json as {
      plan: string; upload: { method: string; url: string; headers: Record<string, string> };
    };
  }

  async function multipart(content: Buffer, { policy, bearer, key }: Wish, plan?: string): Promise<Uploaded> {
    const speaker = { bearer, plan, headers: keyHeader(key) };
    const begun = await lane.init(plan === undefined ? file(content, { policy: policy ?? {} }) : { filename, size: content.length }, speaker);
    if (begun.status !== 201) throw new Error(begun.text);
    const { uploadId } = begun.json as { uploadId: string };
    const parts = { bearer, plan };
    // A repeated request finds its upload completed.
    if ((await lane.status(uploadId, parts)).json.state === 'initialized') await sendParts(begun, content, parts);
    return (await must('/api/upload/multipart/complete', { bearer, json: { uploadId }, headers: plan === undefined ? {} : { 'X-Transfer-Plan': plan } })).json as Uploaded;
  }

  /** To the addresses of the direct lane where there are some, by the exchange otherwise. */
  async function sendParts({ json: { uploadId, direct } }: Answer, content: Buffer, speaker: { bearer?: string | undefined; plan?: string | undefined }): Promise<void> {
    if (!direct) return void await lane.sendAll(uploadId as string, [content], speaker);
    const [{ url, headers }] = direct.parts;
    const sent = await fetch(url as string, { method: 'PUT', headers, body: new Uint8Array(content) });
    if (!sent.ok) throw new Error(`direct part: ${sent.status} ${await sent.text()}`);
  }

  return [
    {
      name: 'the single lane', type: 'file',
      async create(content, wish) {
        const { upload: { method, url, headers } } = await planned(content, wish, 'single');
        return (await must(url, { method, headers, body: new Uint8Array(content) })).json as Uploaded;
      },
    },
    { name: 'the multipart lane', type: 'file', create: (content, wish) => multipart(content, wish) },
    ...['multipart', 'direct'].map((name): WayIn => ({
      name: `a plan for the ${name} lane`, type: 'file',
      create: async (content, wish) => multipart(content, { bearer: wish.bearer }, (await planned(content, wish, name)).plan),
    })),
  ];
}

function importing({ must }: Exchange, serve: Surroundings['serve']): WayIn {
  return {
    name: 'URL import', type: 'file',
    create: async (content, { policy, bearer, key }) => (await must('/api/import-url', { bearer, headers: keyHeader(key), json: { url: serve(content), filename, mimeType, ...policy } })).json as Uploaded,
  };
}

function byMcp(exchange: Exchange): WayIn[] {
  const { mustTool } = mcpOf(exchange);
  const facts = ({ policy, key }: Wish) => ({ filename, mimeType, ...policy, ...(key && { operationId: key }) });
  return [
    { name: 'upload_text', type: 'file', create: (content, wish) => mustTool('upload_text', { text: content.toString(), ...facts(wish) }, wish.bearer) as Promise<Uploaded> },
    {
      name: 'upload_json', type: 'file', contentOf: (fetched) => Buffer.from(JSON.parse(fetched.toString()) as string),
      create: (content, wish) => mustTool('upload_json', { value: content.toString(), ...facts(wish) }, wish.bearer) as Promise<Uploaded>,
    },
  ];
}

function folder(exchange: Exchange): WayIn {
  const lane = folderLane(exchange);
  return {
    name: 'a folder', type: 'folder', contentOf: (fetched) => readZip(fetched)[0]!.bytes,
    async create(content, { policy, bearer, key }) {
      const { folderId, zipUrl, ...made } = (await exchange.must('/api/folder', { bearer, headers: keyHeader(key), json: { name: 'way', ...policy } })).json as Folder;
      if ((await lane.list({ ...made, folderId, zipUrl })).json.count === 0) await lane.add({ ...made, folderId, zipUrl }, filename, content);
      return made;
    },
  };
}

function pipe(exchange: Exchange): WayIn {
  return {
    name: 'a pipe', type: 'pipe',
    async create(content, { policy, bearer, key }) {
      const { pipeId, uploadUrl, ...made } = await makePipe(exchange, { filename, mimeType, ...policy }, { bearer, headers: keyHeader(key) });
      const sent = await sendAll(exchange, { ...made, pipeId, uploadUrl }, content);
      // A repeated request finds its pipe written.
      if (sent.status !== 200 && !(key !== undefined && sent.status === 409)) throw new Error(sent.text);
      return made;
    },
  };
}

/** At a gateway that has the retired surfaces switched on. */
function form(legacy: Surroundings['legacy']): WayIn {
  return {
    name: 'the retired form', type: 'file',
    async create(content, { policy, bearer, key }) {
      const body = new FormData();
      body.set('file', new File([new Uint8Array(content)], filename, { type: mimeType }));
      for (const [field, value] of spellOut(policy)) body.set(field, value);
      return (await legacy().must('/api/upload', { body, bearer, headers: keyHeader(key) })).json as Uploaded;
    },
  };
}

function resumable(legacy: Surroundings['legacy']): WayIn {
  return {
    name: 'TUS', type: 'file',
    async create(content, { policy, bearer, key }) {
      const lane = tusLane(legacy());
      const { passcode, ...words } = Object.fromEntries(spellOut(policy));
      const headers = { ...keyHeader(key), ...(passcode !== undefined && { 'X-Share-Passcode': passcode }) };
      const path = new URL(await lane.begin(content.length, { filename, filetype: mimeType, ...words }, { bearer, headers })).pathname;
      // A repeated request finds its upload completed.
      if ((await lane.head(path, { bearer })).offset === 0) await lane.patch(path, 0, content, { bearer });
      return toldShare((await lane.head(path, { bearer })).headers);
    },
  };
}
