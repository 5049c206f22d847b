import { describe, expect, test } from 'vitest';
import { fail, failField } from '../../../shared/errors.ts';
import { isPolicyField, readPolicyTexts, respell } from './form-fields.ts';

const read = (texts: Record<string, unknown>) => readPolicyTexts(new Map(Object.entries(texts)));

describe('texts become the fields of a plan', () => {
  test('each by its name', () => {
    expect(read({ ttl: '60', max_uses: '2', auth_mode: 'agent', allowed_agent_ids: 'a, b', policy_template_id: 'public', agent_group_id: 'agrp_x', passcode: '1234' })).toEqual({
      ttl: 60, maxUses: 2, authMode: 'agent', allowedAgentIds: ['a', 'b'], policyTemplateId: 'public', agentGroupId: 'agrp_x', passcode: '1234',
    });
    expect(['maxUses', 'constructor', '__proto__', 'file'].filter(isPolicyField)).toEqual([]);
  });

  test('both names of the metadata together', () => {
    expect(read({ policy_metadata: '{"a":"1"}', metadata: '{"a":"1","b":"2"}' })).toEqual({ policyMetadata: { a: '1', b: '2' } });
    expect(read({ metadata: { read: 'already' } })).toEqual({ policyMetadata: { read: 'already' } });
    expect(() => read({ metadata: '{"a":"1"}', policy_metadata: '{"a":"2"}' })).toThrow('a has another value');
  });

  test.each([['ttl', ''], ['ttl', '1.5'], ['ttl', '-1'], ['ttl', '9'.repeat(16)], ['allowed_agent_ids', ''], ['allowed_agent_ids', null], ['metadata', '[]'], ['metadata', 'null'], ['metadata', '"x"'], ['metadata', '{"__proto__":"x"}']])(
    'not %s: %j', (name, text) => {
      expect(() => read({ [name]: text })).toThrow(new RegExp(`^${name}: `));
    });
});

describe('a refusal of a plan', () => {
  const errors = [{ path: 'maxUses', message: 'too small' }, { path: 'policyMetadata.a', message: 'too long' }, { path: 'filename', message: 'bad' }];
  const respelled = (texts: Record<string, unknown>) => {
    try {
      return respell(new Map(Object.entries(texts)), { filename: 'file' })(fail('invalid_request', { errors }));
    } catch (error) {
      return (error as ReturnType<typeof fail>).details;
    }
  };

  test('names what the sender wrote', () => {
    expect(respelled({ metadata: '{}' })).toMatchObject({ detail: 'max_uses: too small', errors: [{ path: 'max_uses' }, { path: 'metadata.a' }, { path: 'file' }] });
    expect(respelled({ policy_metadata: '{}' })).toMatchObject({ errors: [{}, { path: 'policy_metadata.a' }, {}] });
  });

  test('without fields stays as it is', () => {
    for (const error of [fail('group_not_found'), new Error('x')]) expect(() => respell(new Map(), {})(error)).toThrow(error);
    expect(() => respell(new Map(), {})(failField('Idempotency-Key', 'bad'))).toThrow('Idempotency-Key: bad');
  });
});
