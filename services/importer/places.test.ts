import { expect, test } from 'vitest';
import { makePlaces } from './places.ts';

const code = (name: string) => expect.objectContaining({ code: name });

test('a caller has a quarter of the places, and all callers together have all', () => {
  const places = makePlaces(8);
  const leave = [places.enter('a'), places.enter('a')];
  expect(() => places.enter('a')).toThrow(code('rate_limited'));
  for (const caller of ['b', 'b', 'c', 'c', 'd', 'd']) places.enter(caller);
  expect(() => places.enter('e')).toThrow(code('overloaded'));
  leave[0]!();
  places.enter('e');
  expect(() => places.enter('e')).toThrow(code('overloaded'));
});
