/** Floor: the service behind the hop, in a queue group: an echo, a SELECT by key, a guarded UPDATE by key; one statement each. */
import type { Msg } from 'nats';
import postgres from 'postgres';
import { connectNats } from './nats.ts';
import { receiveSettings, sayReady } from './process.ts';

const { natsUrl, databaseUrl, schema, subject } = await receiveSettings();
const connection = await connectNats(natsUrl);
// The pool is as large as a service's own by default; the driver knows `max_pipeline`, its type declarations do not.
const options: postgres.Options<Record<string, never>> & { max_pipeline: number } = { max: 10, max_pipeline: 1 };
const sql = postgres(databaseUrl, options);
const table = sql`${sql(schema)}.counters`;

const read = (key: number) => sql`select key, name, uses from ${table} where key = ${key}`;
const spend = (key: number) => sql`update ${table} set uses = uses + 1 where key = ${key} and uses < max_uses returning uses`;

function serve(kind: string, answer: (key: number, message: Msg) => PromiseLike<unknown>): void {
  connection.subscribe(`${subject}.${kind}`, {
    queue: 'floor',
    callback: async (_error, message) => {
      const { key } = message.json<{ key: number }>();
      message.respond(JSON.stringify(await answer(key, message)));
    },
  });
}

serve('echo', async (key) => ({ key }));
serve('select', async (key) => (await read(key))[0]);
serve('update', async (key) => (await spend(key))[0]);
serve('hot', async (key) => (await spend(key))[0]);
await connection.flush();
sayReady(0);
