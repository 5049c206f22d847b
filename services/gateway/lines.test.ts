/** Streams of lines: bounded, stopped by their reader, and never short without an error. */
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { linesOf, type Page } from './lines.ts';

/** Pages of two numbers each, counted as they are asked for. */
function pagesOf(count: number, failAt = Infinity) {
  const asked: number[] = [];
  const page = (n: number): Page => ({ items: [2 * n, 2 * n + 1], next: n + 1 < count ? String(n + 1) : null });
  const ask = async (cursor: string) => {
    asked.push(Number(cursor));
    if (Number(cursor) === failAt) throw new Error('no page');
    return page(Number(cursor));
  };
  return { first: page(0), ask, asked };
}

const streamOf = (pages: ReturnType<typeof pagesOf>) => Readable.from(linesOf(pages.first, pages.ask), { objectMode: false, highWaterMark: 1 });

async function textOf(stream: Readable): Promise<string> {
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  return text;
}

describe('lines', () => {
  test('every item is a line, in order, and nothing is an empty text', async () => {
    expect(await textOf(streamOf(pagesOf(3)))).toBe('0\n1\n2\n3\n4\n5\n');
    expect(await textOf(Readable.from(linesOf({ items: [], next: null }, async () => { throw new Error('not asked'); })))).toBe('');
  });

  test('a page that fails breaks the stream', async () => {
    await expect(textOf(streamOf(pagesOf(5, 3)))).rejects.toThrow('no page');
  });

  test('a reader that does not read has few pages waiting, and none are asked for after it left', async () => {
    const pages = pagesOf(1_000);
    const stream = streamOf(pages);
    await new Promise<void>((resolve) => { stream.once('readable', resolve); });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(pages.asked.length).toBeLessThan(5);
    stream.destroy();
    const asked = pages.asked.length;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(pages.asked.length - asked).toBeLessThan(2);
  });
});
