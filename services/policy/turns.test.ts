import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { makeTurns } from './turns.ts';

test('work of one name is done one after the other, also after a failure; other names do not wait', async () => {
  const takeTurn = makeTurns();
  const done: string[] = [];
  const work = (name: string, milliseconds: number) => async () => {
    await setTimeout(milliseconds);
    done.push(name);
    if (name === 'a2') throw new Error('failed');
    return name;
  };
  const outcomes = await Promise.allSettled([
    takeTurn('a', work('a1', 60)), takeTurn('a', work('a2', 1)), takeTurn('a', work('a3', 1)), takeTurn('b', work('b1', 20)),
  ]);
  expect(done).toEqual(['b1', 'a1', 'a2', 'a3']);
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
});
