/** The documentation shows what the interface description says. */
import { describe, expect, test } from 'vitest';
import { errorCodes, errorTable } from '../shared/errors.ts';
import { docsPage } from './docs-page.ts';
import { boundsOf, chaptersOf, fieldsOf, typeOf, type OpenApi } from './openapi.ts';
import { plannedUploadPage } from './planned-upload-page.ts';
import { problemPage, problemsIndexPage } from './problem-page.ts';

const baseUrl = 'https://exchange.example';
const openapi: OpenApi = {
  info: { title: 'Asset Exchange', version: '4.0.0' },
  tags: [{ name: 'Audit' }, { name: 'Empty' }],
  components: { securitySchemes: { owner: { description: 'Owner session' } }, schemas: { Id: { type: 'string', maxLength: 64 } } },
  paths: {
    '/api/thing/{id}': {
      parameters: [],
      post: {
        tags: ['Things'], summary: 'Make <things> with `care`', security: [{ owner: [] }, {}],
        parameters: [{ name: 'id', in: 'path', required: true, schema: { $ref: '#/components/schemas/Id' } }],
        requestBody: { content: { 'application/json': { schema: { type: 'object', required: ['size'], properties: { size: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER } } } } } },
        responses: { 409: { description: 'Full', 'x-error-codes': ['group_full', 'no_such_code'] }, 201: { description: 'Made', content: { 'application/json': { schema: { type: 'object', properties: { at: { type: 'string', format: 'date-time', pattern: '^x$' } } } } } } },
      },
    },
    '/api/audit': { get: { tags: ['Audit'], responses: {} } },
  },
};

describe('documentation', () => {
  test('chapters come in the order of the description, without empty ones', () => {
    expect(chaptersOf(openapi).map(({ name, endpoints }) => [name, endpoints.map(({ id }) => id)])).toEqual([['Audit', ['get-api-audit']], ['Things', ['post-api-thing-id']]]);
  });

  test('an endpoint shows its method, path, callers, fields, bounds, answer and errors', () => {
    const page = docsPage({ baseUrl, openapi });
    for (const part of ['href="#post-api-thing-id"', 'id="post-api-thing-id"', 'Make &lt;things&gt; with <code>care</code>', 'Owner session · anyone', 'at most 64 characters', 'at least 1', '<strong>201</strong>', 'date-time', 'href="/problems/group_full"']) expect(page).toContain(part);
    expect(page).not.toContain('no_such_code');
  });

  test('nested fields, lists and values that may be null are named and typed', () => {
    const list = { type: 'array', maxItems: 9, items: { type: 'object', required: ['b'], properties: { b: { anyOf: [{ type: 'string' }, { type: 'null' }] } } } };
    const fields = fieldsOf(openapi, { properties: { a: list, o: { type: 'object', additionalProperties: { type: 'string' } } } });
    expect(fields.map(({ name, type, required, bounds }) => [name, type, required, bounds])).toEqual([
      ['a', 'list of object', false, 'at most 9 items'], ['a[].b', 'string or null', true, ''], ['o', 'object of string', false, ''],
    ]);
  });

  test('bounds are words', () => {
    expect(boundsOf(openapi, { minimum: 30, maximum: 604_800, default: 86_400 })).toBe('30 to 604,800; default 86400');
    expect(boundsOf(openapi, { enum: ['open', 'agent'] })).toBe('open · agent');
    expect(typeOf(openapi, { const: 'Bearer' })).toBe('"Bearer"');
  });

  test('every error code has a page, and the index links to it', () => {
    const index = problemsIndexPage({ baseUrl });
    for (const code of errorCodes) {
      const page = problemPage({ code, entry: errorTable[code], baseUrl });
      expect(page).toContain(`<dd>${errorTable[code].status}</dd>`);
      expect(index).toContain(`href="/problems/${code}"`);
    }
  });

  test('the planned upload is five lines of each', () => {
    const codes = [...plannedUploadPage({ baseUrl }).matchAll(/<code id="(curl|typescript)"[^>]*>([^<]*)<\/code>/g)];
    expect(codes.map((code) => [code[1], code[2]!.split('\n').length])).toEqual([['curl', 5], ['typescript', 5]]);
  });
});
