/** What the handlers of this service are made from. */
import type { Clock } from '../../shared/clock.ts';
import type { DomainEvent } from '../../shared/events.ts';
import type { Bus } from '../../shared/rpc.ts';
import type { PlanKey } from '../../shared/tokens.ts';
import type { TransferBounds } from './domain/geometry.ts';
import type { TtlBounds } from './domain/release.ts';
import type { agentKeysStore } from './store/agent-keys.ts';
import type { answersStore } from './store/answers.ts';
import type { fetchesStore } from './store/fetches.ts';
import type { groupsStore } from './store/groups.ts';
import type { oidcStore } from './store/oidc.ts';
import type { ownersStore } from './store/owners.ts';
import type { permissionsStore } from './store/permissions.ts';
import type { ownSharesStore } from './store/own-shares.ts';
import type { passcodeTriesStore, TryLimit } from './store/passcode-tries.ts';
import type { rateCountsStore } from './store/rate-counts.ts';
import type { sessionsStore } from './store/sessions.ts';
import type { sharesStore } from './store/shares.ts';
import type { SignInLimits, signInTriesStore } from './store/sign-in-tries.ts';

export type Store =
  & ReturnType<typeof agentKeysStore>
  & ReturnType<typeof answersStore>
  & ReturnType<typeof fetchesStore>
  & ReturnType<typeof groupsStore>
  & ReturnType<typeof oidcStore>
  & ReturnType<typeof ownersStore>
  & ReturnType<typeof permissionsStore>
  & ReturnType<typeof ownSharesStore>
  & ReturnType<typeof passcodeTriesStore>
  & ReturnType<typeof rateCountsStore>
  & ReturnType<typeof sessionsStore>
  & ReturnType<typeof sharesStore>
  & ReturnType<typeof signInTriesStore>;

export interface Deps {
  readonly store: Store;
  readonly bus: Pick<Bus, 'call'>;
  readonly clock: Clock;
  /** Publishes an event of something that changed nothing. */
  readonly publish: (event: DomainEvent) => void;
  readonly keys: {
    readonly grant: readonly Buffer[];
    readonly accessToken: readonly Buffer[];
    readonly answer: readonly Buffer[];
    readonly shareCursor: readonly Buffer[];
    readonly passcode: readonly Buffer[];
    readonly requestDigest: readonly Buffer[];
    readonly oidcFlow: readonly Buffer[];
    readonly plan: readonly PlanKey[];
  };
  readonly limits: {
    readonly ttl: TtlBounds;
    readonly transfer: TransferBounds;
    /** Seconds. */
    readonly planTtl: number;
    readonly grantTtl: number;
    readonly accessTokenTtl: number;
    readonly sessionTtl: number;
    readonly anonymousCreate: boolean;
    /** Wrong passcodes of one share, and the seconds that they count for. */
    readonly passcode: TryLimit;
    /** Wrong passwords of one account and from one address. */
    readonly signIn: SignInLimits;
  };
  readonly baseUrl: string;
}
