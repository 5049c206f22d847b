/** Inputs made from a JSON Schema: good ones, and ones that are bad on purpose. The same seed makes the same inputs. */

/** The parts of JSON Schema that the interface description uses. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly pattern?: string;
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
}

/** What programs get wrong. */
const hostile: readonly unknown[] = [
  null, true, -1, 0, 0.5, 2 ** 53 + 2, 1e308, '', ' ', '0', 'null', '\0', 'a\0b', '\ud800', '\u202egnp.exe', '../..', '..%2f', '%00', "'; --", '{}',
  '__proto__', 'constructor', 'é'.repeat(200), 'x'.repeat(5_000), '\r\nX-Other: 1', [], [null], [[]], {}, { __proto__x: 1 }, { constructor: { prototype: 1 } },
  '2026-02-30T00:00:00Z', '2026-01-01T00:00:00+99:00', '+275760-09-13T00:00:00.001Z', '9999-12-31T23:59:59Z', '0001-01-01T00:00:00Z',
  'NaN', '1e3', '-0', '0x10', Array.from({ length: 200 }, (_, index) => `a${index}`), Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`k${index}`, 'v'])),
];

export type RandomInput = ReturnType<typeof randomInput>;

/** Fields and parameters that belong together, such as a share's id and the grant for it. */
export type Scene = Readonly<Record<string, string>>;

/** `known`: texts that mean something, used wherever no pattern forbids them. */
export function randomInput(seed: number, known: readonly string[]) {
  let state = seed;
  let scene: Scene = {};
  let isPlain = false;
  /** From 0 to 1 (mulberry32). */
  function random(): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  const chance = (share: number) => random() < share;
  const below = (bound: number) => Math.floor(random() * bound);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!;

  function number({ minimum = 0, maximum = Number.MAX_SAFE_INTEGER }: Schema): number {
    const [low, high] = [Math.max(minimum, -1e9), Math.min(maximum, 1e12)];
    return pick([low, Math.min(low + 1, high), Math.floor(low + random() * Math.min(high - low, 1_000)), high]);
  }

  function text({ pattern, format, minLength = 0, maxLength = 300 }: Schema): string {
    if (format === 'date-time' && chance(0.8)) return new Date(Date.now() + (random() - 0.3) * 86_400_000).toISOString();
    if (format === 'email') return `${below(1e9)}@example.com`;
    const fitting = known.filter((one) => (pattern === undefined || new RegExp(pattern).test(one)) && one.length >= minLength && one.length <= maxLength);
    return fitting.length > 0 ? pick(fitting) : 'x'.repeat(Math.max(minLength, Math.min(8, maxLength)));
  }

  function object({ properties = {}, required = [], additionalProperties }: Schema): Record<string, unknown> {
    const own = Object.entries(properties).filter(([name]) => required.includes(name) || isWanted(name)).map(([name, schema]) => [name, named(name, schema)] as const);
    const free = typeof additionalProperties === 'object' ? Array.from({ length: below(3) }, (_, index) => [`label${index}`, value(additionalProperties)] as const) : [];
    return Object.fromEntries([...own, ...free]);
  }

  /** One that the schema allows, as far as the schema says what is allowed. */
  function value(schema: Schema): unknown {
    if (schema.const !== undefined) return schema.const;
    if (schema.enum) return pick(schema.enum);
    if (schema.anyOf) return value(pick(schema.anyOf));
    switch (Array.isArray(schema.type) ? pick(schema.type as readonly string[]) : schema.type) {
      case 'integer': case 'number': return number(schema);
      case 'boolean': return chance(0.5);
      case 'null': return null;
      case 'array': return Array.from({ length: Math.max(schema.minItems ?? 0, Math.min(below(4), schema.maxItems ?? 4)) }, () => value(schema.items ?? {}));
      case 'object': return object(schema);
      default: return text(schema);
    }
  }

  /** Whether an optional field is sent. */
  function isWanted(name: string): boolean {
    if (isPlain) return scene[name] !== undefined;
    return chance(scene[name] === undefined ? 0.2 : 0.8);
  }

  /** A field's value: most often the scene's, so that good requests come through to something. */
  function named(name: string, schema: Schema): unknown {
    return scene[name] !== undefined && !isBad(0.2) ? scene[name] : value(schema);
  }

  /** The same fields with one of them replaced, left out, or one too many. */
  function spoil(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const names = Object.keys(fields);
    const name = names.length > 0 && chance(0.85) ? pick(names) : pick(['unknown', '__proto__', 'constructor', 'toString']);
    const inner = fields[name];
    const { [name]: _left, ...others } = fields;
    if (chance(0.2)) return others;
    const isObject = typeof inner === 'object' && inner !== null && !Array.isArray(inner);
    const spoilt = isObject && chance(0.6) ? spoil(inner as Record<string, unknown>) : pick(hostile);
    // Defined, not assigned: `__proto__` is to be a field like any other.
    return Object.defineProperty({ ...others }, name, { value: spoilt, enumerable: true, configurable: true, writable: true });
  }

  /** What the following requests are about. Plain ones say what the scene has and what they must, and nothing bad. */
  function enter(one: Scene, plain: boolean): void {
    scene = one;
    isPlain = plain;
  }

  /** Whether to do something bad. */
  const isBad = (share: number) => !isPlain && chance(share);

  return { value, named, isWanted, isBad, spoil, pick, enter, hostile: () => pick(hostile) };
}
