/** What a writer or reader of an object store asks while bytes move. Keys are known to nobody outside. */
import type { Handler } from '../../../shared/contract.ts';
import type { blobs as contracts } from '../../../shared/contracts/blobs.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { beginSession, objectsOf } from './sessions.ts';

export const touchBlob = ({ store, limits }: Deps): Handler<typeof contracts.touchBlob> =>
  async function touchBlob({ key }) {
    return { wanted: await store.touchBlob(key, limits.blobIdle) };
  };

export const signWrite = (deps: Deps): Handler<typeof contracts.signWrite> =>
  async function signWrite({ key, size, partNumber }) {
    const { store, limits } = deps;
    // Nobody would find what is written for a file that was given up.
    if (!(await store.touchBlob(key, limits.blobIdle))) throw fail('upload_expired');
    if (partNumber === undefined) return { url: await objectsOf(deps).signWrite(key, size) };
    const session = (await store.findSession(key)) ?? (await beginSession(deps, key));
    return { url: await objectsOf(deps).signWrite(key, size, { session, partNumber }) };
  };

export const sealBlob = (deps: Deps): Handler<typeof contracts.sealBlob> =>
  async function sealBlob({ key, parts }) {
    const { store, limits } = deps;
    const session = (await store.touchBlob(key, limits.blobIdle)) ? await store.findSession(key) : undefined;
    if (!session) throw fail('upload_expired');
    await objectsOf(deps).complete(key, session, parts);
    return {};
  };

export const signRead = (deps: Deps): Handler<typeof contracts.signRead> =>
  async function signRead({ key }) {
    return { url: await objectsOf(deps).signRead(key) };
  };
