/** Requests by methods that `fetch` does not send, and by HEAD, whose answers have headers of a body but none. */
import { request } from 'node:http';

export interface Headed {
  readonly status: number;
  readonly headers: Headers;
  /** Bytes of the body that came. */
  readonly length: number;
}

export function byMethod(address: string | URL, method: string, headers: Record<string, string> = {}): Promise<Headed> {
  return new Promise((resolve, reject) => {
    request(address, { method, headers, agent: false }, (response) => {
      let length = 0;
      response.on('data', (bytes: Buffer) => { length += bytes.length; });
      response.on('end', () => resolve({ status: response.statusCode!, headers: new Headers(response.headers as Record<string, string>), length }));
      response.on('error', reject);
    }).on('error', reject).end();
  });
}
