import { expect, test } from 'vitest';
import { cutting } from './s3-cutting.ts';

/** The sizes of the parts, and which one said that it is the last. */
async function cut(batches: number[][], partSize: number): Promise<{ sizes: number[]; text: string }> {
  let at = 0;
  const given = batches.map((sizes) => sizes.map((size) => Buffer.from(Array.from({ length: size }, () => at++ % 256))));
  const { next } = cutting(async () => given.shift(), partSize);
  const parts = [];
  for (let isLast = false; !isLast;) {
    const part = await next();
    ({ isLast } = part);
    parts.push(part);
  }
  return { sizes: parts.map(({ size }) => size), text: Buffer.concat(parts.flatMap(({ chunks }) => chunks)).toString('hex') };
}

test.each<[number[][], number[]]>([
  [[], [0]], [[[3]], [3]], [[[10]], [10]], [[[11]], [10, 1]], [[[4, 4], [4], [30]], [10, 10, 10, 10, 2]], [[[20]], [10, 10]], [[[1], [1], [1]], [3]],
])('batches of %j become parts of ten bytes: %j', async (batches, expected) => {
  const { sizes, text } = await cut(batches, 10);
  expect(sizes).toEqual(expected);
  const total = batches.flat().reduce((sum, size) => sum + size, 0);
  expect(text).toBe(Buffer.from(Array.from({ length: total }, (_, index) => index % 256)).toString('hex'));
});
