/** The retired upload surfaces: every method answers 410 and says where to go (interface chapter: Endpoints, Retirement). */
import { fail, type Failure } from '../../../shared/errors.ts';
import type { Surface, Surfaces } from '../legacy-surfaces.ts';

const surfaces: readonly Surface[] = ['upload', 'tus'];

/** Whether a path that no route serves belongs to a retired surface that is not switched on. The multipart lane below /api/upload is alive and has routes. */
export function isRetired(path: string, legacy: Surfaces): boolean {
  return surfaces.some((surface) => !legacy.has(surface) && (path === `/api/${surface}` || path.startsWith(`/api/${surface}/`)));
}

export function retired(baseUrl: string): Failure {
  return fail('transfer_surface_retired', {
    detail: `This upload surface is retired. Ask for a plan with POST ${baseUrl}/api/transfer-plan and send the bytes to the upload.url of its answer.`,
    see: { plan: `POST ${baseUrl}/api/transfer-plan`, docs: `${baseUrl}/docs/planned-upload` },
  });
}
