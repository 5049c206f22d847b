/** The policy fields of the legacy surfaces: texts with names of their own, read into the fields of a plan (interface chapter: Transfer plan and creation). */
import { fail, failField, Failure } from '../../../shared/errors.ts';
import { parseJson } from './json-body.ts';

/** What came under each name. A form may hold JSON that was read already. */
export type Texts = ReadonlyMap<string, unknown>;

type Read = (text: unknown, name: string) => unknown;

const asText: Read = (text) => text;
const asNumber: Read = (text, name) => {
  if (typeof text !== 'string' || !/^\d{1,15}$/.test(text)) throw failField(name, 'must be a whole number');
  return Number(text);
};
const asList: Read = (text) => (typeof text === 'string' ? text.split(',').map((item) => item.trim()) : text);
const asObject: Read = (text, name) => {
  const value = typeof text === 'string' ? parseObject(text, name) : text;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw failField(name, 'must be a JSON object');
  return value;
};

function parseObject(text: string, name: string): unknown {
  try {
    return parseJson(Buffer.from(text));
  } catch (error) {
    throw error instanceof Failure ? failField(name, 'must be a JSON object') : error;
  }
}

/** Name in a form -> name in a plan, and how its text is read. */
const known: Readonly<Record<string, readonly [field: string, read: Read]>> = {
  ttl: ['ttl', asNumber],
  max_uses: ['maxUses', asNumber],
  auth_mode: ['authMode', asText],
  allowed_agent_ids: ['allowedAgentIds', asList],
  policy_template_id: ['policyTemplateId', asText],
  agent_group_id: ['agentGroupId', asText],
  passcode: ['passcode', asText],
  policy_metadata: ['policyMetadata', asObject],
  metadata: ['policyMetadata', asObject],
};

export function isPolicyField(name: string): boolean {
  return Object.hasOwn(known, name);
}

/**
 * Reads what came into the fields of a plan; their bounds are the plan's. `metadata` is another name of `policy_metadata`: both together are all their labels.
 * Promise: an empty text is refused. Taken for absent, an allow list that a script failed to fill in would make an open share.
 * @throws invalid_request that names the field as it came
 */
export function readPolicyTexts(texts: Texts): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const [name, text] of texts) {
    const [field, read] = known[name]!;
    if (text === '' || text === null) throw failField(name, 'must not be empty');
    const value = read(text, name);
    fields[field] = field in fields ? joinLabels(fields[field] as object, value as object) : value;
  }
  return fields;
}

function joinLabels(one: object, other: object): object {
  const both = { ...one, ...other };
  const clash = Object.entries(one).find(([label, value]) => both[label as never] !== value);
  if (clash) throw failField('metadata', `${clash[0].slice(0, 64)} has another value in policy_metadata`);
  return both;
}

/** Throws a failure that names fields of a plan with the names that their sender used; `others` has those that are no policy fields. */
export function respell(texts: Texts, others: Readonly<Record<string, string>>) {
  const names = new Map(Object.entries(known).map(([name, [field]]) => [field, name]));
  for (const [field, name] of Object.entries(others)) names.set(field, name);
  for (const name of texts.keys()) names.set(known[name]![0], name);
  return (error: unknown): never => {
    if (!(error instanceof Failure) || !error.details.errors) throw error;
    const errors = error.details.errors.map(({ path, message }) => {
      const [field = '', ...below] = path.split('.');
      return { path: [names.get(field) ?? field, ...below].join('.'), message };
    });
    throw fail(error.code, { ...error.details, errors, detail: `${errors[0]!.path}: ${errors[0]!.message}` }, error);
  };
}
