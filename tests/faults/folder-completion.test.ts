/** A command that was accepted is carried out, whatever dies behind its 202 (interface chapter: Folders). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exchangeAt, type Exchange } from '../support/exchange.ts';
import { eventually, figure, startFaultStack, type FaultStack } from '../support/fault-stack.ts';
import { folderLane, type Declared, type Folder } from '../support/folder-lane.ts';
import { readZip } from '../support/read-zip.ts';

const commands = figure(100, 1_000);
/** The storage service is killed right behind each of so many 202s. */
const commandsAKill = figure(20, 1);

let stack: FaultStack;
let end: () => Promise<void>;
let exchange: Exchange;
let lane: ReturnType<typeof folderLane>;
let session: string;
beforeAll(async () => {
  ({ stack, end } = await startFaultStack());
  exchange = exchangeAt(stack.baseUrl, stack.owner);
  lane = folderLane(exchange);
  session = await exchange.signIn();
});
afterAll(async () => end());

/** Sends a command until it is accepted: nobody promised anything before. */
async function accept(folder: Folder, file: Declared): Promise<void> {
  const accepted = await eventually(() => lane.complete(folder, file, `complete-${file.fileId}`).then(({ status }) => status), (status) => status === 202, 30_000);
  expect(accepted).toBe(202);
}

const statesOf = (folder: Folder) => stack.query<{ state: string; count: number }>(`select state, count(*)::int as count from storage.completions where folder_id = '${folder.id}' group by state`);

describe('accepted commands', () => {
  test(`${commands} of them, storage killed right behind the 202: all ready within 60 s, one completion each`, { timeout: 2_400_000 }, async () => {
    const folder = await lane.create({}, session);
    const files: Declared[] = [];
    for (let index = 0; index < commands; index += 1) files.push(await lane.send(folder, `${index}.txt`, `content of ${index}`));
    for (let index = 0; index < commands; index += commandsAKill) {
      const batch = files.slice(index, index + commandsAKill);
      await Promise.all(batch.map((file) => accept(folder, file)));
      await stack.services['storage']!.kill('SIGKILL');
      await stack.services['storage']!.start();
    }
    const states = await eventually(() => statesOf(folder), ([first, ...others]) => first?.state === 'ready' && others.length === 0, 60_000);
    expect(states).toEqual([{ state: 'ready', count: commands }]);

    const { bytes } = await exchange.must(folder.zipUrl);
    expect(Object.fromEntries(readZip(bytes).map((file) => [file.name, file.bytes.toString()]))).toEqual(Object.fromEntries(files.map(({ path }, index) => [path, `content of ${index}`])));
    // An event whose relay was killed again and again is sent again ever later, up to ten minutes: late, and never twice.
    const completed = await eventually(() => completionsOf(folder), (counts) => counts.size === commands, figure(60_000, 720_000));
    expect([...completed].filter(([, count]) => count !== 1)).toEqual([]);
    expect(completed.size).toBe(commands);
    expect(stack.crashes).toEqual([]);
  });

  test('are tried again after the database was away', async () => {
    const folder = await lane.create({}, session);
    const file = await lane.send(folder, 'a.txt', 'a');
    await accept(folder, file);
    await stack.postgres.restart('immediate');
    expect(await eventually(() => lane.untilDone(folder, `complete-${file.fileId}`).catch(() => ({ state: 'away' })), ({ state }) => state === 'ready', 30_000)).toMatchObject({ state: 'ready' });
  });
});

/** File -> how often the record has it completed. */
async function completionsOf(folder: Folder): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (let cursor: string | null = ''; cursor !== null;) {
    const query = new URLSearchParams({ eventType: 'folder.file_ready', targetId: folder.id, limit: '100', ...(cursor && { cursor }) });
    const { json } = await exchange.must(`/api/audit?${query}`, { bearer: session });
    for (const { data: { fileId } } of json.events as { data: { fileId: string } }[]) counts.set(fileId, (counts.get(fileId) ?? 0) + 1);
    cursor = json.nextCursor as string | null;
  }
  return counts;
}
