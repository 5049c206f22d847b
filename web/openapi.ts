/** Reads the interface description (OpenAPI 3.1) for the documentation page: chapters, endpoints, fields with their bounds. */

/** The part of a JSON Schema that is shown. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}

interface Media {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
}

export interface Answer extends Media {
  readonly description?: string;
  /** The codes of the error table that share this status here. */
  readonly 'x-error-codes'?: readonly string[];
}

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
}

export interface Operation {
  readonly summary?: string;
  readonly description?: string;
  readonly operationId?: string;
  readonly tags?: readonly string[];
  /** Alternatives; an empty one stands for a caller without any credential. Absent: nobody is asked. */
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Media & { readonly required?: boolean };
  readonly responses?: Readonly<Record<string, Answer>>;
  readonly deprecated?: boolean;
}

export interface OpenApi {
  readonly info: { readonly title: string; readonly version: string };
  readonly tags?: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components?: {
    readonly schemas?: Readonly<Record<string, Schema>>;
    readonly securitySchemes?: Readonly<Record<string, { readonly description?: string }>>;
  };
}

export interface Endpoint {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export interface Chapter {
  readonly name: string;
  readonly description: string | undefined;
  readonly endpoints: readonly Endpoint[];
}

export interface Field {
  /** Nested ones with a dot, items of a list with `[]`. */
  readonly name: string;
  /** Where it is sent: path, query, header or body. Absent for what is returned. */
  readonly place?: string;
  readonly type: string;
  readonly required: boolean;
  readonly bounds: string;
  readonly description: string | undefined;
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'];

/** Endpoints by their first tag, in the order of the description. */
export function chaptersOf(openapi: OpenApi): Chapter[] {
  const endpoints = Object.entries(openapi.paths).flatMap(([path, item]) =>
    methods.filter((method) => item[method]).map((method): Endpoint => ({
      id: `${method}-${path}`.replace(/[^A-Za-z0-9]+/g, '-').replace(/-$/, '').toLowerCase(),
      method: method.toUpperCase(), path, operation: item[method] as Operation,
    })));
  const tagOf = (endpoint: Endpoint) => endpoint.operation.tags?.[0] ?? 'Endpoints';
  const names = [...new Set([...(openapi.tags ?? []).map((tag) => tag.name), ...endpoints.map(tagOf)])];
  return names.map((name) => ({
    name,
    description: openapi.tags?.find((tag) => tag.name === name)?.description,
    endpoints: endpoints.filter((endpoint) => tagOf(endpoint) === name),
  })).filter((chapter) => chapter.endpoints.length > 0);
}

/** Nesting beyond this is left to the description itself. */
const deepest = 3;

/** The fields of an object, nested ones after their parents. */
export function fieldsOf(openapi: OpenApi, schema: Schema, prefix = '', depth = 0): Field[] {
  const { properties = {}, required = [] } = resolved(openapi, schema);
  return Object.entries(properties).flatMap(([key, property]) => {
    const own = resolved(openapi, property);
    const name = `${prefix}${key}`;
    const field = { name, type: typeOf(openapi, own), required: required.includes(key), bounds: boundsOf(openapi, own), description: property.description ?? own.description };
    return depth >= deepest ? [field] : [field, ...nestedFields(openapi, own, name, depth)];
  });
}

function nestedFields(openapi: OpenApi, schema: Schema, name: string, depth: number): Field[] {
  const object = nonNull(openapi, schema);
  if (object.items) return fieldsOf(openapi, object.items, `${name}[].`, depth + 1);
  return fieldsOf(openapi, object, `${name}.`, depth + 1);
}

function resolved(openapi: OpenApi, schema: Schema): Schema {
  const name = schema.$ref?.replace('#/components/schemas/', '');
  const found = name === undefined ? schema : { ...openapi.components?.schemas?.[name], ...schema };
  return found.allOf ? found.allOf.reduce<Schema>((whole, part) => ({ ...whole, ...resolved(openapi, part) }), found) : found;
}

/** The alternative that is not null, of a value that may be. */
function nonNull(openapi: OpenApi, schema: Schema): Schema {
  const choices = (schema.anyOf ?? schema.oneOf)?.filter((choice) => choice.type !== 'null');
  return choices?.length === 1 ? resolved(openapi, choices[0]!) : schema;
}

export function typeOf(openapi: OpenApi, schema: Schema): string {
  const own = resolved(openapi, schema);
  const choices = own.anyOf ?? own.oneOf;
  if (choices) return [...new Set(choices.map((choice) => typeOf(openapi, choice)))].join(' or ');
  if (own.const !== undefined) return JSON.stringify(own.const);
  if (own.format === 'date-time') return 'date-time';
  if (own.items) return `list of ${typeOf(openapi, own.items)}`;
  if (typeof own.additionalProperties === 'object' && !own.properties) return `object of ${typeOf(openapi, own.additionalProperties)}`;
  return [own.type ?? 'any'].flat().join(' or ');
}

/** A longer one tells a reader nothing. */
const longestPattern = 60;

export function boundsOf(openapi: OpenApi, given: Schema): string {
  const schema = resolved(openapi, given);
  const each = schema.items && boundsOf(openapi, schema.items);
  const bounds = [
    schema.enum && schema.enum.map((value) => String(value)).join(' · '),
    span(schema.minimum, schema.maximum, ''),
    span(schema.minLength, schema.maxLength, ' characters'),
    span(schema.minItems, schema.maxItems, ' items'),
    schema.pattern && schema.format === undefined && schema.pattern.length <= longestPattern && `matches ${schema.pattern}`,
    schema.default !== undefined && `default ${JSON.stringify(schema.default)}`,
    each && `each: ${each}`,
  ];
  return bounds.filter(Boolean).join('; ');
}

/** A bound that only says "fits into a number" says nothing. */
function span(least: number | undefined, most: number | undefined, unit: string): string | undefined {
  const low = least === undefined || least <= Number.MIN_SAFE_INTEGER ? undefined : least.toLocaleString('en');
  const high = most === undefined || most >= Number.MAX_SAFE_INTEGER ? undefined : most.toLocaleString('en');
  if (low !== undefined && high !== undefined) return low === high ? `${low}${unit}` : `${low} to ${high}${unit}`;
  if (low !== undefined) return `at least ${low}${unit}`;
  return high === undefined ? undefined : `at most ${high}${unit}`;
}
