/** Secrets that were issued, in every form in which somebody could have written them down. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { FaultStack } from './fault-stack.ts';

export interface Secret {
  readonly name: string;
  readonly value: string;
  /** Places where it may be, by design. */
  readonly allowed: readonly string[];
}

interface Needle {
  readonly secret: Secret;
  readonly form: string;
  readonly bytes: Buffer;
}

/** What makes a token a secret: all behind its id. A password is one as a whole. */
function secretPart(value: string): string {
  return value.slice(value.lastIndexOf('.') + 1);
}

/** As it is, in hexadecimal, in base64; and the random bytes that the token's text stands for. */
function needlesOf(secret: Secret): Needle[] {
  const texts = [...new Set([secret.value, secretPart(secret.value)])];
  return texts.flatMap((text) => {
    const raw = Buffer.from(text, 'base64url');
    const isEncoded = /^[\w-]{24,}$/.test(text) && raw.toString('base64url') === text;
    const forms: Record<string, Buffer> = {
      text: Buffer.from(text), hex: Buffer.from(Buffer.from(text).toString('hex')), base64: Buffer.from(Buffer.from(text).toString('base64').replace(/=+$/, '')),
      ...(isEncoded && { bytes: raw, 'hex of bytes': Buffer.from(raw.toString('hex')) }),
    };
    return Object.entries(forms).map(([form, bytes]) => ({ secret, form, bytes }));
  });
}

/** Every secret that a place holds and should not, by name and form. */
export function findSecrets(secrets: readonly Secret[], place: string, content: Buffer | string): string[] {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  const found = secrets.filter(({ allowed }) => !allowed.includes(place)).flatMap(needlesOf).filter((needle) => bytes.includes(needle.bytes));
  return [...new Set(found.map(({ secret, form }) => `${place}: ${secret.name} as ${form}`))];
}

/** The text of every row of every table. */
export async function dumpDatabase({ query }: Pick<FaultStack, 'query'>): Promise<Record<string, string>> {
  const tables = await query<{ name: string }>(`select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname <> 'information_schema'`);
  const dump: Record<string, string> = {};
  for (const { name } of tables) {
    const rows = await query<{ row: string }>(`select t::text as row from ${name} t`);
    dump[name] = rows.map(({ row }) => row).join('\n');
  }
  return dump;
}

/** Every file below a folder, with its bytes. What went meanwhile is left out. */
export function* filesBelow(folder: string): Generator<[path: string, bytes: Buffer]> {
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const full = join(folder, path);
    if (!statSync(full, { throwIfNoEntry: false })?.isFile()) continue;
    try {
      yield [path, readFileSync(full)];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
}

/** The command lines of the processes that this one started, and those that they started. */
export function commandLines(root: number): Record<string, string> {
  const parents = new Map(readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
    const stat = readProc(pid, 'stat');
    return stat ? [[Number(pid), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])] as const] : [];
  }));
  const isBelow = (pid: number | undefined): boolean => pid !== undefined && (parents.get(pid) === root || isBelow(parents.get(pid)));
  return Object.fromEntries([...parents.keys()].filter(isBelow).map((pid) => [`process ${pid}`, readProc(String(pid), 'cmdline')]));
}

/** Empty when the process is gone. */
function readProc(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
