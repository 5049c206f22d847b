import { describe, expect, test } from 'vitest';
import { hideTokens } from './credential.ts';

describe('hideTokens', () => {
  test.each([
    ['/api/share/agk_9DKHyfKWs1wp38O1.O6iPkxdr-jgR5DfG8Zd', '/api/share/agk_…'],
    ['/s/aos_rqWiyLEtRCeSWQex%2EYMzXHgoeBrE0Dab/x', '/s/aos_…/x'],
    ['dlt_9DKHyfKWs1wp38O1.O6i: unknown field', 'dlt_…: unknown field'],
    ['/aat_eyJhbGciOi.eyJrZXki.iiXC0LKw', '/aat_…'],
    ['/api/tus/mpu_9DKHyfKWs1wp38O1', '/api/tus/mpu_…'],
    ['/api/lane/single/eyJhbGciOi.eyJrZXki.iiXC0LKw', '/api/lane/single/eyJ…'],
  ])('%s becomes %s', (text, hidden) => expect(hideTokens(text)).toBe(hidden));

  test.each(['/api/share/shr_9DKHyfKWs1wp38O1', '/api/dl/trf_9DKHyfKWs1wp38O1', 'req_0123456789abcdef', '/api/agent/keys/9DKHyfKWs1wp38O1', 'must look like agrp_…'])(
    '%s stays as it is', (text) => expect(hideTokens(text)).toBe(text),
  );
});
