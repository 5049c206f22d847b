/** The exchange as the benchmark's own preparations use it: plain calls that must succeed. */
import { createHash } from 'node:crypto';

export interface Uploaded {
  readonly id: string;
  readonly shareId: string;
  readonly deleteToken: string;
}

export interface Agent {
  readonly agentId: string;
  readonly key: string;
}

export type Exchange = ReturnType<typeof exchangeAt>;

export function exchangeAt(baseUrl: string) {
  /** @throws what the answer says, when it is not a success. */
  async function call(path: string, init: RequestInit): Promise<Response> {
    const response = await fetch(new URL(path, baseUrl), init);
    if (!response.ok) throw new Error(`${init.method ?? 'GET'} ${path}: ${response.status} ${await response.text()}`);
    return response;
  }

  async function post<T>(path: string, json: unknown, bearer?: string): Promise<T> {
    const headers = { 'content-type': 'application/json', ...(bearer && { authorization: `Bearer ${bearer}` }) };
    return (await (await call(path, { method: 'POST', headers, body: JSON.stringify(json) })).json()) as T;
  }

  return {
    async makeAgent(owner: { email: string; password: string }): Promise<Agent> {
      const { token } = await post<{ token: string }>('/api/owner/session', { email: owner.email, password: owner.password });
      return post<Agent>('/api/agent/keys', {}, token);
    },

    /** A planned upload by the single lane; `fields` are those of the plan. */
    async upload(body: Uint8Array<ArrayBuffer>, fields: Record<string, unknown>, key: string): Promise<Uploaded> {
      const { upload } = await post<{ upload: { method: string; url: string; headers: Record<string, string> } }>('/api/transfer-plan', { size: body.length, ...fields }, key);
      const { method, url, headers } = upload;
      return (await (await call(url, { method, headers, body })).json()) as Uploaded;
    },

    /** SHA-256 of a transfer's bytes as a fetch delivers them, in hexadecimal. */
    async hash({ id, shareId }: Pick<Uploaded, 'id' | 'shareId'>): Promise<string> {
      const hash = createHash('sha256');
      const { body } = await call(`/api/dl/${id}?share_id=${shareId}`, {});
      for await (const chunk of body!) hash.update(chunk);
      return hash.digest('hex');
    },

    async remove({ id, deleteToken }: Pick<Uploaded, 'id' | 'deleteToken'>): Promise<void> {
      await call(`/api/dl/${id}`, { method: 'DELETE', headers: { 'x-delete-token': deleteToken } });
    },
  };
}
