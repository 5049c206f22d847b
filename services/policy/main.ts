/** The policy service: owners and sessions, agents and keys, plans, shares, grants. It never sees bytes. */
import { z } from 'zod';
import { systemClock } from '../../shared/clock.ts';
import { policyContracts } from '../../shared/contracts/all.ts';
import { healthOf } from '../../shared/contracts/health.ts';
import { openDatabase, type Database } from '../../shared/db.ts';
import { newId } from '../../shared/ids.ts';
import type { Logger } from '../../shared/log.ts';
import { measureDatabase, measureOutbox } from '../../shared/metrics.ts';
import { startRelay } from '../../shared/outbox.ts';
import { serve } from '../../shared/rpc.ts';
import { runService } from '../../shared/service.ts';
import { baseUrlSettings, databaseSettings, directSettings, integerSetting, secretSettings, SettingsError } from '../../shared/settings.ts';
import { startSweeper } from '../../shared/sweeper.ts';
import { deriveKeys, derivePlanKeys } from '../../shared/tokens.ts';
import { countUses } from './count-uses.ts';
import type { Deps, Store } from './deps.ts';
import { hashPassword } from './domain/password.ts';
import { createAgentKey, listAgentKeys, revokeAgentKey } from './handlers/agent-keys.ts';
import { admitSender } from './handlers/admit-sender.ts';
import { authenticateAgent } from './handlers/authenticate-agent.ts';
import { makeCheckPassword } from './handlers/check-password.ts';
import { createOwner } from './handlers/create-owner.ts';
import { createShare } from './handlers/create-share.ts';
import { describeShare } from './handlers/describe-share.ts';
import { endShares } from './handlers/end-shares.ts';
import { addGroupMember, createAgentGroup, deleteAgentGroup, listAgentGroups, removeGroupMember, updateAgentGroup } from './handlers/agent-groups.ts';
import { hashPasscode } from './handlers/hash-passcode.ts';
import { identifyCaller, makeIdentify } from './handlers/identify-caller.ts';
import { issueGrant } from './handlers/issue-grant.ts';
import { leaseRequests } from './handlers/lease-requests.ts';
import { finishOidc, startOidc, type Oidc } from './handlers/oidc.ts';
import { changePassword, readSession, signIn, signOut, signOutEverywhere } from './handlers/owner-session.ts';
import { listShares, revokeShare, updateShare } from './handlers/own-shares.ts';
import { planImport } from './handlers/plan-import.ts';
import { planTransfer } from './handlers/plan-transfer.ts';
import { readJwks } from './handlers/read-jwks.ts';
import { resolveShare } from './handlers/resolve-share.ts';
import { returnUse } from './handlers/return-use.ts';
import { spendUse } from './handlers/spend-use.ts';
import { createStandingPermission, listStandingPermissions, revokeStandingPermission } from './handlers/standing-permissions.ts';
import { agentKeysStore } from './store/agent-keys.ts';
import { isLoopback } from './outside/careful-fetch.ts';
import { makeProvider } from './outside/oidc.ts';
import { answersStore } from './store/answers.ts';
import { fetchesStore } from './store/fetches.ts';
import { groupsStore } from './store/groups.ts';
import { oidcStore } from './store/oidc.ts';
import { ownersStore } from './store/owners.ts';
import { permissionsStore } from './store/permissions.ts';
import { ownSharesStore } from './store/own-shares.ts';
import { passcodeTriesStore } from './store/passcode-tries.ts';
import { rateCountsStore } from './store/rate-counts.ts';
import { sessionsStore } from './store/sessions.ts';
import { sharesStore } from './store/shares.ts';
import { signInTriesStore } from './store/sign-in-tries.ts';
import { sweepSteps } from './sweeper.ts';

const MiB = 1_024 ** 2;
const GiB = 1_024 ** 3;
const week = 604_800;

const settingsShape = {
  ...databaseSettings,
  ...secretSettings,
  ...baseUrlSettings,
  FIRST_OWNER_EMAIL: z.email('must be an e-mail address').or(z.literal('owner@localhost')).optional().describe('The owner that is made where there is none'),
  FIRST_OWNER_PASSWORD: z.string().min(12, 'must have at least 12 characters').optional().describe('The password of that owner, 12 characters or more; not read again once there is an owner'),
  ANONYMOUS_CREATE: z.enum(['allow', 'deny'], 'must be allow or deny').default('allow').describe('Whether callers without a credential may create'),
  TTL_DEFAULT_SECONDS: integerSetting({ min: 30, max: week * 52, default: 86_400 }).describe('Life of a share that asks for none'),
  TTL_MAX_SECONDS: integerSetting({ min: 30, max: week * 52, default: week }).describe('The longest life of a share'),
  TRANSFER_MAX_BYTES: integerSetting({ min: 1, max: 5_120 * GiB, default: 10 * GiB }).describe('Size of one transfer; no proxy in front may allow less'),
  PART_SIZE_MIN_BYTES: integerSetting({ min: 1, max: 5 * GiB, default: 5 * MiB }).describe('The smallest part; 5 MiB or more with `DIRECT_LANE`, for object stores take none below'),
  PART_SIZE_DEFAULT_BYTES: integerSetting({ min: 1, max: 5 * GiB, default: 16 * MiB }).describe('The part of a plan that asks for none'),
  PART_COUNT_MAX: integerSetting({ min: 1, max: 10_000, default: 10_000 }).describe('Parts of one upload'),
  ...directSettings,
  PLAN_TTL_SECONDS: integerSetting({ min: 1, max: 86_400, default: 3_600 }).describe('Life of a plan'),
  GRANT_TTL_SECONDS: integerSetting({ min: 1, max: 300, default: 120 }).describe('Life of a grant'),
  ACCESS_TOKEN_TTL_SECONDS: integerSetting({ min: 30, max: 3_600, default: 900 }).describe('Life of an access token of an agent'),
  SESSION_TTL_SECONDS: integerSetting({ min: 300, max: week * 5, default: week }).describe('Life of an owner’s session'),
  PASSCODE_TRIES: integerSetting({ min: 1, max: 1_000, default: 10 }).describe('Wrong passcodes for one share in a window'),
  PASSCODE_WINDOW_SECONDS: integerSetting({ min: 1, max: 86_400, default: 900 }).describe('The window of `PASSCODE_TRIES`'),
  SIGN_IN_TRIES: integerSetting({ min: 1, max: 1_000, default: 10 }).describe('Wrong passwords for one account in a window'),
  SIGN_IN_ADDRESS_TRIES: integerSetting({ min: 1, max: 100_000, default: 100 }).describe('Wrong passwords of one address in a window'),
  SIGN_IN_WINDOW_SECONDS: integerSetting({ min: 1, max: 86_400, default: 900 }).describe('The window of `SIGN_IN_TRIES` and `SIGN_IN_ADDRESS_TRIES`'),
  OIDC_ISSUER: z.url().transform((text) => new URL(text)).refine((url) => url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url)), 'must be an https address').optional().describe('The provider of OpenID Connect; https, but for this machine. Its three settings go together'),
  OIDC_CLIENT_ID: z.string().optional().describe('The name by which the provider knows the exchange'),
  OIDC_CLIENT_SECRET: z.string().optional().describe('The secret that the provider gave it'),
  OIDC_SCOPES: z.string().regex(/(^| )openid( |$)/, 'must contain openid').default('openid email').describe('What is asked of the provider, separated by spaces; `openid` must be among it'),
  OIDC_ALLOWED_EMAIL_DOMAINS: z.string().default('').transform((text) => text.split(',').map((domain) => domain.trim().toLowerCase()).filter(Boolean)).describe('Domains, separated by commas, whose people may sign in by the provider; any when absent'),
  SWEEP_SECONDS: integerSetting({ min: 1, max: 3_600, default: 5 }).describe('Time between two looks at what has ended'),
  REQUEST_LIMIT: integerSetting({ min: 1, max: 100_000, default: 512 }).describe('Requests under way at once in one process; more are refused with `overloaded`'),
};

type Settings = z.output<z.ZodObject<typeof settingsShape>>;

await runService('policy', settingsShape, async ({ settings, bus, log, metrics }) => {
  checkDirect(settings);
  const oidc = makeOidc(settings);
  const database = measureDatabase(openDatabase(settings.DATABASE_URL, settings.DATABASE_POOL, log), settings.DATABASE_POOL, metrics);
  await database.migrate(new URL('./store/migrations/', import.meta.url));
  measureOutbox(database, metrics);
  const relay = startRelay(bus, database, 'policy', log);
  const deps = makeDeps(settings, { database, bus, publish: relay.publish });
  await createFirstOwner(deps.store, settings, log);
  const sweeper = startSweeper(sweepSteps(deps), log, settings.SWEEP_SECONDS);
  const identify = makeIdentify(deps);
  const checkPassword = makeCheckPassword(deps);

  const served = serve({
    bus, log, metrics,
    contracts: { ...policyContracts, ...healthOf('policy') },
    handlers: {
      planTransfer: planTransfer(deps),
      planImport: planImport(deps),
      admitSender: admitSender(deps),
      hashPasscode: hashPasscode(deps),
      readJwks: readJwks(deps),
      resolveShare: resolveShare(deps),
      listShares: listShares(deps),
      updateShare: updateShare(deps),
      revokeShare: revokeShare(deps),
      describeShare: describeShare(deps),
      createShare: createShare(deps),
      endShares: endShares(deps),
      ...countUses({ spendUse: spendUse(deps), returnUse: returnUse(deps) }, metrics),
      issueGrant: issueGrant(deps),
      identifyCaller: identifyCaller(deps),
      authenticateAgent: authenticateAgent(deps),
      createAgentKey: createAgentKey(deps),
      listAgentKeys: listAgentKeys(deps),
      revokeAgentKey: revokeAgentKey(deps),
      createAgentGroup: createAgentGroup(deps),
      listAgentGroups: listAgentGroups(deps),
      updateAgentGroup: updateAgentGroup(deps),
      deleteAgentGroup: deleteAgentGroup(deps),
      addGroupMember: addGroupMember(deps),
      removeGroupMember: removeGroupMember(deps),
      createStandingPermission: createStandingPermission(deps),
      listStandingPermissions: listStandingPermissions(deps),
      revokeStandingPermission: revokeStandingPermission(deps),
      leaseRequests: leaseRequests(deps),
      createOwner: createOwner(deps),
      signIn: signIn(deps, checkPassword),
      changePassword: changePassword(deps, checkPassword),
      readSession: readSession(deps),
      signOut: signOut(deps),
      signOutEverywhere: signOutEverywhere(deps),
      startOidc: startOidc(deps, oidc),
      finishOidc: finishOidc(deps, oidc),
      readHealth: async () => ({ ready: await database.isReady() }),
    },
    identify,
    limit: settings.REQUEST_LIMIT,
    onHandled: relay.wake,
  });

  return {
    isReady: database.isReady,
    async stop() {
      await served.drain();
      await sweeper.stop();
      await relay.close();
      await database.close();
    },
  };
});

/** Parts of the direct lane go straight to an object store, which takes none that are smaller. */
function checkDirect({ DIRECT_LANE: lane, PART_SIZE_MIN_BYTES: smallest }: Settings): void {
  if (lane === 'on' && smallest < 5 * MiB) throw new SettingsError('Bad settings: PART_SIZE_MIN_BYTES must be at least 5242880 when DIRECT_LANE is on.');
}

function makeDeps(settings: Settings, { database, ...parts }: Pick<Deps, 'bus' | 'publish'> & { database: Database }): Deps {
  const secrets = settings.AEX_SECRET;
  return {
    store: {
      ...agentKeysStore(database), ...answersStore(database), ...fetchesStore(database), ...groupsStore(database),
      ...oidcStore(database), ...ownersStore(database), ...ownSharesStore(database), ...passcodeTriesStore(database), ...permissionsStore(database),
      ...rateCountsStore(database), ...sessionsStore(database), ...sharesStore(database), ...signInTriesStore(database),
    },
    clock: systemClock,
    ...parts,
    baseUrl: settings.BASE_URL,
    keys: {
      grant: deriveKeys(secrets, 'grant'),
      accessToken: deriveKeys(secrets, 'access token'),
      answer: deriveKeys(secrets, 'answer'),
      shareCursor: deriveKeys(secrets, 'share cursor'),
      passcode: deriveKeys(secrets, 'passcode'),
      requestDigest: deriveKeys(secrets, 'request digest'),
      oidcFlow: deriveKeys(secrets, 'oidc flow'),
      plan: derivePlanKeys(secrets),
    },
    limits: {
      ttl: { default: settings.TTL_DEFAULT_SECONDS, max: settings.TTL_MAX_SECONDS },
      transfer: {
        maxBytes: settings.TRANSFER_MAX_BYTES,
        partSizeMin: settings.PART_SIZE_MIN_BYTES,
        partSizeDefault: settings.PART_SIZE_DEFAULT_BYTES,
        partSizeMax: 5 * GiB,
        maxParts: settings.PART_COUNT_MAX,
        maxParallelParts: 6,
        direct: settings.DIRECT_LANE === 'on',
      },
      planTtl: settings.PLAN_TTL_SECONDS,
      grantTtl: settings.GRANT_TTL_SECONDS,
      accessTokenTtl: settings.ACCESS_TOKEN_TTL_SECONDS,
      sessionTtl: settings.SESSION_TTL_SECONDS,
      anonymousCreate: settings.ANONYMOUS_CREATE === 'allow',
      passcode: { tries: settings.PASSCODE_TRIES, window: settings.PASSCODE_WINDOW_SECONDS },
      signIn: {
        account: { tries: settings.SIGN_IN_TRIES, window: settings.SIGN_IN_WINDOW_SECONDS },
        address: { tries: settings.SIGN_IN_ADDRESS_TRIES, window: settings.SIGN_IN_WINDOW_SECONDS },
      },
    },
  };
}

/** The provider, when the settings name one. @throws SettingsError when they name only a part of it */
function makeOidc(settings: Settings): Oidc | undefined {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = settings;
  if (!issuer && !clientId && !clientSecret) return undefined;
  if (!issuer || !clientId || !clientSecret) throw new SettingsError('Bad settings: OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET must be set together.');
  const redirectUri = `${settings.BASE_URL}/api/owner/oidc/callback`;
  return { provider: makeProvider({ issuer, clientId, clientSecret, scopes: settings.OIDC_SCOPES, redirectUri }), domains: settings.OIDC_ALLOWED_EMAIL_DOMAINS };
}

/** On a database without owners, makes the one named in the settings. Replicas that start together make one. */
async function createFirstOwner(store: Store, settings: Settings, log: Logger): Promise<void> {
  const { FIRST_OWNER_EMAIL: email, FIRST_OWNER_PASSWORD: password } = settings;
  if (!email || !password || (await store.hasOwner())) return;
  const made = await store.createFirstOwner({ id: newId('owner'), email, passwordHash: await hashPassword(password) });
  if (made) log.info({ email }, 'the first owner was made');
}
