/** Many clients at once, each with a connection of its own as far as the exchange lets them in. */
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

/** Below what one service takes at once, so that tests which run beside a crowd are served too. */
const connections = 400;

export interface Visit {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  /** Hangs up: as soon as the request is sent, or when the answer begins. */
  readonly leave?: 'at once' | 'when answered';
}

export interface Visited {
  /** 0 when the client left before it knew. */
  readonly status: number;
  readonly code: string | undefined;
  readonly length: number;
}

export interface Crowd {
  /** All visits begin together. One that is told to come again does. */
  visit(address: string, visits: readonly Visit[]): Promise<Visited[]>;
  leave(): void;
}

export function gatherCrowd(): Crowd {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  async function visitUntilSure(address: string, visit: Visit): Promise<Visited> {
    for (let tries = 1; ; tries += 1) {
      const visited = await visitOnce(agent, address, visit);
      if (visited.status !== 503 || tries === 20) return visited;
      await pause(1_000);
    }
  }
  return {
    visit: (address, visits) => Promise.all(visits.map((visit) => visitUntilSure(address, visit))),
    leave: () => agent.destroy(),
  };
}

function visitOnce(agent: Agent, address: string, { method = 'GET', headers = {}, leave }: Visit): Promise<Visited> {
  return new Promise((resolve, reject) => {
    // Whoever leaves must not take a connection along that others wait for.
    const sent = request(address, { method, headers, agent: leave ? false : agent });
    const left = { status: 0, code: undefined, length: 0 };
    sent.on('error', (error) => (leave ? resolve(left) : reject(error)));
    sent.on('response', (response) => {
      const status = response.statusCode!;
      const chunks: Buffer[] = [];
      let length = 0;
      if (leave === 'when answered') {
        sent.destroy();
        resolve({ status, code: undefined, length });
        return;
      }
      response.on('data', (bytes: Buffer) => {
        length += bytes.length;
        if (status >= 400) chunks.push(bytes);
      });
      response.on('error', reject);
      response.on('end', () => resolve({ status, length, code: chunks.length > 0 ? (JSON.parse(Buffer.concat(chunks).toString()) as { code: string }).code : undefined }));
    });
    sent.end(() => {
      if (leave !== 'at once') return;
      // After the bytes are on their way, so that the exchange does see the request.
      setImmediate(() => {
        sent.destroy();
        resolve(left);
      });
    });
  });
}

/** How many visits had each outcome: the code of a refusal, or the status. */
export function tally(visited: readonly Visited[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, code } of visited) counts[code ?? status] = (counts[code ?? status] ?? 0) + 1;
  return counts;
}

/** Does a thing so many times, a few at a time. */
export async function inTurns<T>(count: number, atOnce: number, act: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let done = 0; done < count; done += atOnce) {
    results.push(...await Promise.all(Array.from({ length: Math.min(atOnce, count - done) }, (_, index) => act(done + index))));
  }
  return results;
}
