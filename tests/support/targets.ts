/** Resources of one owner that others come to, each with what a request needs to name it. */
import { randomUUID } from 'node:crypto';
import type { Cast } from './cast.ts';
import type { Exchange } from './exchange.ts';
import { makePipe } from './pipes.ts';
import { folderLane } from './folder-lane.ts';

/** What a request names, by field. Ids among them can be replaced by ids of nothing. */
export type Target = Readonly<Record<string, string>>;

/** In every name that the owner gives: who may not see a resource finds it in no answer. */
export const marker = `only-for-its-owner-${randomUUID()}`;

const file = { filename: `${marker}.txt`, mimeType: 'text/plain', policyMetadata: { label: marker } };

const isId = (field: string) => /^id$|Id$/.test(field);

/** The ids of a target that only those learn whom it is for. */
export function idsOf(target: Target): string[] {
  return Object.entries(target).flatMap(([field, value]) => (isId(field) ? [value] : []));
}

/** The same target with ids that nobody ever gave out. */
export function absent(target: Target): Target {
  const other = (id: string) => id.replace(/[A-Za-z0-9]+$/, (rest) => [...rest].reverse().join(''));
  return Object.fromEntries(Object.entries(target).map(([field, value]) => [field, isId(field) ? other(value) : field === 'email' ? `nobody-${value}` : value]));
}

export function targetsOf(exchange: Exchange, { owner, named }: Cast) {
  const { must, upload, grant, plan } = exchange;
  const forNamed = { authMode: 'agent', allowedAgentIds: [named.agentId] };
  const made = async (policy: object, bearer?: string): Promise<Target> => ({ ...(await upload('some bytes', { ...file, ...policy }, bearer)) });
  const by = async (path: string, json: object, bearer = owner.session) => (await must(path, { json, bearer })).json as Record<string, any>;

  async function multipart(bearer: string | undefined, planned?: string): Promise<Target> {
    const answer = await must('/api/upload/multipart/init', { bearer, headers: planned ? { 'x-transfer-plan': planned } : {}, json: { filename: file.filename, size: 4 } });
    const { uploadId } = answer.json as { uploadId: string };
    await must(`/api/upload/multipart/part?uploadId=${uploadId}&partNumber=1`, { bearer, headers: planned ? { 'x-transfer-plan': planned } : {}, body: 'sent' });
    return { uploadId, ...(planned && { plan: planned }) };
  }

  /** A folder with one file that is ready, and the command that completed it. */
  async function folder(policy: object, bearer: string): Promise<Target> {
    const lane = folderLane(exchange);
    const made = await lane.create({ name: marker, policyMetadata: { label: marker }, ...policy }, bearer);
    const { fileId, uploadId } = await lane.send(made, `${marker}.txt`, 'some bytes');
    const operationId = `op-${randomUUID()}`;
    await lane.complete(made, { fileId, uploadId }, operationId);
    await lane.untilDone(made, operationId);
    return { ...made, fileId, uploadId, operationId };
  }

  return {
    folder: () => folder({}, owner.session),
    folderByAgent: () => folder({}, named.key),
    agentFolder: () => folder(forNamed, owner.session),
    grantedFolder: async () => {
      const target = await folder(forNamed, owner.session);
      return { ...target, grant: await grant(target['shareId']!, named.key) };
    },
    nothing: async (): Promise<Target> => ({ name: randomUUID() }),
    openShare: () => made({}, owner.session),
    agentShare: () => made(forNamed, owner.session),
    shareByAgent: () => made(forNamed, named.key),
    passcodeShare: () => made({ passcode: 'open sesame' }, owner.session),
    granted: async () => {
      const target = await made(forNamed, owner.session);
      return { ...target, grant: await grant(target['shareId']!, named.key) };
    },
    recorded: async () => {
      const target = await made(forNamed, owner.session);
      await exchange.events(owner.session, { shareId: target['shareId']! });
      return target;
    },
    transfer: () => made({}, owner.session),
    transferByAgent: () => made({}, named.key),
    pipe: async (): Promise<Target> => ({ ...(await makePipe(exchange, file, { bearer: owner.session })) }),
    pipeByAgent: async (): Promise<Target> => ({ ...(await makePipe(exchange, file, { bearer: named.key })) }),
    key: async (): Promise<Target> => {
      const { agentId, keyId } = await by('/api/agent/keys', { name: marker });
      return { agentId, keyId };
    },
    group: async (): Promise<Target> => ({
      groupId: (await by('/api/agent/groups', { name: marker, members: ['member'], policyDefaults: { mode: 'agent', allowedAgentIds: [named.agentId] } }))['group'].id,
    }),
    permission: async (): Promise<Target> => ({
      permissionId: (await by('/api/agent/permissions', { fromAgentId: named.agentId, toAgentId: marker, scopes: ['share.resolve'] }))['permission'].id,
    }),
    account: async (): Promise<Target> => ({ email: (await exchange.makeOwner(await exchange.signIn())).email }),
    plan: async (): Promise<Target> => {
      const planned = await plan({ ...file, size: 10, lane: 'single' }, owner.session);
      return { planId: planned.planId, plan: planned.plan };
    },
    upload: () => multipart(owner.session),
    uploadByAgent: () => multipart(named.key),
    plannedUpload: async () => multipart(undefined, (await plan({ filename: file.filename, size: 4, lane: 'multipart' }, owner.session)).plan),
  };
}

export type Targets = ReturnType<typeof targetsOf>;

/** Everything of an owner, and the target, as those it is for see it. */
export async function lookAt({ must, call }: Exchange, { owner, named }: Cast, target: Target): Promise<unknown> {
  const read = async (path: string) => (await must(path, { bearer: owner.session })).json as Record<string, unknown>;
  const status = async (bearer: string) => {
    const headers: Record<string, string> = target['plan'] ? { 'x-transfer-plan': target['plan'] } : {};
    const answer = await call(`/api/upload/multipart/status?uploadId=${target['uploadId']}`, { bearer, headers });
    return answer.status < 400 ? answer.json as unknown : answer.status;
  };
  return Promise.all([
    read('/api/shares?limit=200'), read('/api/agent/keys'), read('/api/agent/groups'), read('/api/agent/permissions'), read('/api/owner/session'),
    ...(target['uploadId'] ? [status(owner.session), status(named.key)] : []),
    target['id'] && fetch(target['downloadUrl']!, { method: 'HEAD' }).then(({ status: code }) => code),
  ]);
}
