/** Small requests: resolve, grant, fetch and upload of 4 KiB, at 64 connections unless told otherwise. */
import type { Wire } from '../load/job.ts';
import { bearer, small, smallJob, type Case, type ShareKind, type Stand } from './case.ts';
import type { Uploaded } from './exchange.ts';
import { floorName } from './floors.ts';

/** More grants are issued than a fetch of the same time is expected to need. */
const grantsAhead = 1.6;

const base = { unit: 'req/s', side: 'product' } as const;

function resolve(name: string, kind: ShareKind): Case {
  return {
    ...base, name, floors: [floorName.select],
    prepare: async (stand) => {
      const headers = kind === 'agent' ? bearer(stand.agent) : {};
      const requests = (await stand.shares(kind)).map(({ shareId }) => ({ method: 'GET', path: `/api/share/${shareId}`, headers }));
      return smallJob(stand, { flow: { kind: 'requests', requests, status: 200 } });
    },
  };
}

function fetchOpen(name: string, kind: ShareKind, floors: readonly string[]): Case {
  return {
    ...base, name, floors,
    prepare: async (stand) => {
      const requests = (await stand.shares(kind)).map(({ id, shareId }) => ({ method: 'GET', path: `/api/dl/${id}?share_id=${shareId}` }));
      return smallJob(stand, { flow: { kind: 'requests', requests, status: 200, size: small } });
    },
  };
}

function grantRequests({ agent }: Stand, shares: readonly Uploaded[]): Wire[] {
  const headers = { ...bearer(agent), 'Content-Type': 'application/json' };
  return shares.map(({ shareId }) => ({ method: 'POST', path: '/api/agent/grants', headers, text: JSON.stringify({ shareId }) }));
}

const issue: Case = {
  ...base, name: 'grant issue', floors: [floorName.update],
  prepare: async (stand) => smallJob(stand, { flow: { kind: 'requests', requests: grantRequests(stand, await stand.shares('agent')), status: 201 } }),
};

/** Fetches end when the grants do, which were issued beforehand. */
function fetchGranted(name: string, kind: ShareKind, floors: readonly string[]): Case {
  return {
    ...base, name, floors,
    prepare: async (stand) => {
      const issuing = smallJob(stand, {
        flow: { kind: 'requests', requests: grantRequests(stand, await stand.shares(kind)), status: 201 },
        collect: ['accessToken', 'targetId'],
      });
      const seconds = (stand.seconds + stand.warmupSeconds) * grantsAhead;
      const { collected } = await stand.load({ ...issuing, seconds, warmupSeconds: 0 });
      const requests = collected.map(({ accessToken = '', targetId }) => ({ method: 'GET', path: `/api/dl/${targetId}`, headers: { 'X-Access-Grant': accessToken } }));
      return smallJob(stand, { flow: { kind: 'requests', requests, status: 200, size: small, once: true } });
    },
  };
}

const upload: Case = {
  ...base, name: 'upload 4 KiB: plan + single lane', floors: [floorName.smallIn, floorName.update],
  prepare: async (stand) => {
    const headers = { ...bearer(stand.agent), 'Content-Type': 'application/json' };
    const text = JSON.stringify({ filename: 'small.bin', mimeType: 'application/octet-stream', size: small, lane: 'single' });
    return smallJob(stand, { flow: { kind: 'single', size: small, plan: { method: 'POST', path: '/api/transfer-plan', headers, text } } });
  },
};

export const smallCases: readonly Case[] = [
  resolve('resolve an open share', 'open'),
  resolve('resolve an agent share', 'agent'),
  issue,
  fetchGranted('fetch 4 KiB by grant', 'agent', [floorName.update, floorName.smallOut]),
  fetchGranted('fetch 4 KiB by grant, all of one share', 'agent hot', [floorName.hot, floorName.smallOut]),
  fetchOpen('fetch 4 KiB, open', 'open', [floorName.select, floorName.smallOut]),
  fetchOpen('fetch 4 KiB, maxUses', 'capped', [floorName.update, floorName.smallOut]),
  fetchOpen('fetch 4 KiB, maxUses, all of one share', 'hot', [floorName.hot, floorName.smallOut]),
  upload,
];
