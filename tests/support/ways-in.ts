/** Every way to make a share, behind one function each: what comes after it is the same for all. */
import { exchangeAt, type Exchange, type Uploaded } from './exchange.ts';
import { multipartLane } from './multipart-lane.ts';
import { toldShare, tusLane } from './tus-lane.ts';

/** The policy fields of a creation request, as JSON spells them. */
export type PolicyFields = Record<string, unknown>;

export interface Wish {
  readonly policy?: PolicyFields;
  readonly bearer?: string | undefined;
  /** Idempotency-Key. */
  readonly key?: string;
}

export interface WayIn {
  readonly name: string;
  readonly type: 'file' | 'pipe' | 'folder';
  /** Stores the content and answers the Upload response. Throws when it is refused, with the answer's text. */
  create(content: Buffer, wish: Wish): Promise<Uploaded>;
  /** What a fetch of the whole share holds of the content; the content itself when absent. */
  contentOf?(fetched: Buffer): Promise<Buffer> | Buffer;
}

const filename = 'way.txt';
const mimeType = 'text/plain';

const keyHeader = (key: string | undefined): Record<string, string> => (key === undefined ? {} : { 'Idempotency-Key': key });

export function waysIn(exchange: Exchange): WayIn[] {
  const { must } = exchange;
  const file = (content: Buffer, { policy }: Wish) => ({ filename, mimeType, size: content.length, ...policy });

  async function planned(content: Buffer, wish: Wish, lane: string) {
    const { bearer, key } = wish;
    return (await must('/api/transfer-plan', { bearer, headers: keyHeader(key), json: { ...file(content, wish), lane } })).json as {
      plan: string; upload: { method: string; url: string; headers: Record<string, string> };
    };
  }

  async function multipart(content: Buffer, { policy, bearer, key }: Wish, plan?: string): Promise<Uploaded> {
    const lane = multipartLane(exchange);
    const speaker = { bearer, plan, headers: keyHeader(key) };
    const begun = await lane.init(plan === undefined ? file(content, { policy: policy ?? {} }) : { filename, size: content.length }, speaker);
    if (begun.status !== 201) throw new Error(begun.text);
    const { uploadId } = begun.json as { uploadId: string };
    const parts = { bearer, plan };
    // A repeated request finds its upload completed.
    if ((await lane.status(uploadId, parts)).json.state === 'initialized') await lane.sendAll(uploadId, [content], parts);
    return (await must('/api/upload/multipart/complete', { bearer, json: { uploadId }, headers: plan === undefined ? {} : { 'X-Transfer-Plan': plan } })).json as Uploaded;
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
    {
      name: 'the multipart lane under a plan', type: 'file',
      create: async (content, wish) => multipart(content, { bearer: wish.bearer }, (await planned(content, wish, 'multipart')).plan),
    },
  ];
}

/** Policy fields as forms and TUS metadata spell them: texts with underscores. */
function textsOf(policy: PolicyFields = {}): Record<string, string> {
  const asText = (value: unknown) => (Array.isArray(value) ? value.join(',') : typeof value === 'object' ? JSON.stringify(value) : String(value));
  return Object.fromEntries(Object.entries(policy).map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), asText(value)]));
}

/** The retired surfaces, at a gateway that has them switched on. */
export function legacyWaysIn({ owner }: Exchange, gateway: () => string): WayIn[] {
  return [
    {
      name: 'a form', type: 'file',
      async create(content, { policy, bearer, key }) {
        const form = new FormData();
        form.append('file', new Blob([new Uint8Array(content)], { type: mimeType }), filename);
        for (const [name, text] of Object.entries(textsOf(policy))) form.append(name, text);
        return (await exchangeAt(gateway(), owner).must('/api/upload', { body: form, bearer, headers: keyHeader(key) })).json as Uploaded;
      },
    },
    {
      name: 'TUS', type: 'file',
      async create(content, { policy, bearer, key }) {
        const lane = tusLane(exchangeAt(gateway(), owner));
        const { passcode, ...words } = textsOf(policy);
        const headers = { ...keyHeader(key), ...(passcode !== undefined && { 'X-Share-Passcode': passcode }) };
        const path = new URL(await lane.begin(content.length, { filename, filetype: mimeType, ...words }, { bearer, headers })).pathname;
        // A repeated request finds its upload completed.
        if ((await lane.head(path, { bearer })).offset === 0) await lane.patch(path, 0, content, { bearer });
        return toldShare((await lane.head(path, { bearer })).headers);
      },
    },
  ];
}
