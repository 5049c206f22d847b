/** Which retired surfaces a deployment has switched on. */
import { z } from 'zod';

const surfaces = ['upload', 'tus'] as const;
export type Surface = (typeof surfaces)[number];
export type Surfaces = ReadonlySet<Surface>;

const isSurface = (name: string): name is Surface => (surfaces as readonly string[]).includes(name);

export const legacySettings = {
  LEGACY_SURFACES: z
    .string()
    .transform((text) => text.split(',').map((name) => name.trim()))
    .refine((names) => names.every(isSurface), 'must be upload, tus or both, separated by commas')
    .transform((names): Surfaces => new Set(names.filter(isSurface)))
    .default(new Set()).describe('Retired surfaces to switch on: `upload`, `tus` or both, separated by commas'),
};
