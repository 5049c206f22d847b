/** Nothing of the interface goes without a spec test, and the pages of the docs say what the tables say. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Named } from '../../shared/contract.ts';
import { allContracts } from '../../shared/contracts/all.ts';
import { errorCodes, errorTable, type ErrorCode } from '../../shared/errors.ts';
import { eventTypes, targetTypes } from '../../shared/events.ts';
import { root, sourceFiles } from '../support/source-files.ts';

const specs = sourceFiles('tests/spec').map(({ text }) => text).join('\n');
const contracts = Object.values(allContracts) as Named[];

/** Routes that have no contract. */
const otherRoutes = [
  'PUT /api/lane/single/{planId}', 'HEAD /api/dl/{id}', 'POST /mcp', 'GET /mcp', 'POST /api/upload', 'OPTIONS /api/tus', 'POST /api/tus', 'HEAD /api/tus/{uploadId}', 'PATCH /api/tus/{uploadId}', 'DELETE /api/tus/{uploadId}',
  'GET /healthz', 'GET /readyz', 'GET /openapi.json', 'GET /docs', 'GET /s/{shareId}', 'GET /problems/{code}',
];

/** Codes of the table that no endpoint answers yet, each with the part of the interface that will. */
const unreached: Partial<Record<ErrorCode, string>> = {
  length_required: 'uploads that go straight to an object store',
};

/** Codes that need a fault to be reached; the fault tests and the units do. */
const byFault: readonly ErrorCode[] = ['internal', 'service_unavailable', 'overloaded', 'deadline_exceeded'];

function page(name: string): string {
  return readFileSync(join(root, 'docs', name), 'utf8');
}

describe('coverage', () => {
  test.each(contracts.flatMap(({ http }) => (http ? [`${http.method} ${http.path}`] : [])).concat(otherRoutes))('%s has a spec test', (route) => {
    expect(specs).toContain(route);
  });

  test('every error code that can be reached is reached by a spec test', () => {
    const missing = errorCodes.filter((code) => !(code in unreached) && !byFault.includes(code) && !specs.includes(code));
    expect(missing).toEqual([]);
  });

  test('a code that is said to be unreached is declared by no contract', () => {
    const declared = new Set(contracts.flatMap(({ errors }) => errors));
    expect((Object.keys(unreached) as ErrorCode[]).filter((code) => declared.has(code))).toEqual([]);
  });

  test('the error table and its page are the same', () => {
    const rows = [...page('errors.md').matchAll(/^\| `(\w+)` \| (\d{3}) \| ([^|]+) \|/gm)].map(([, code, status, title]) => `${code} ${status} ${title!.trim()}`);
    const table = errorCodes.map((code) => `${code} ${errorTable[code].status} ${errorTable[code].title}`);
    expect(rows.sort()).toEqual(table.sort());
  });

  test('the event table and its page are the same', () => {
    const rows = [...page('events.md').matchAll(/^\| `([\w.]+)` \|/gm)].map(([, type]) => type);
    expect(rows.sort()).toEqual(Object.keys(eventTypes).sort());
  });

  test('the event page says of each type what it is about, who causes it, and where', () => {
    const rows = [...page('events.md').matchAll(/^\| `([\w.]+)` \|(.+)\|$/gm)].map(([, type, rest]) => [type!, ...rest!.split('|').map((cell) => cell.trim())] as const);
    const sources = new Map(sourceFiles('services').map(({ path, text }) => [path, text]));
    const wrong = rows.filter(([type, records, target = '', actors = '', places = '']) => {
      const paths = [...places.matchAll(/`([^`]+)`/g)].map(([, path]) => path!);
      return records !== eventTypes[type as keyof typeof eventTypes] || ![...targetTypes, 'none'].includes(target)
        || actors.split(/[,;] /).some((actor) => !['owner', 'agent', 'anonymous', 'service'].includes(actor))
        || paths.length === 0 || paths.some((path) => !sources.get(path)?.includes(`'${type}'`))
        || [...sources].some(([path, text]) => !paths.includes(path) && !path.endsWith('.test.ts') && new RegExp(`eventType: '${type}'(?! \\|)`).test(text));
    });
    expect(wrong).toEqual([]);
  });

  test('every event type is emitted somewhere', () => {
    const source = sourceFiles('services').map(({ text }) => text).join('\n');
    expect(Object.keys(eventTypes).filter((type) => !source.includes(`'${type}'`))).toEqual([]);
  });
});
