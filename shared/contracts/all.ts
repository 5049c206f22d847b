/** Every contract that the services serve, for what looks at all of them: the mount, the interface description, the tests. */
import { agents } from './agents.ts';
import { audit } from './audit.ts';
import { blobs } from './blobs.ts';
import { grants } from './grants.ts';
import { groups } from './groups.ts';
import { owners } from './owners.ts';
import { permissions } from './permissions.ts';
import { plans } from './plans.ts';
import { rates } from './rates.ts';
import { shares } from './shares.ts';
import { transfers } from './transfers.ts';
import { uploads } from './uploads.ts';

export const policyContracts = { ...plans, ...shares, ...grants, ...agents, ...groups, ...permissions, ...owners, ...rates };
export const storageContracts = { ...uploads, ...transfers, ...blobs };
export const auditContracts = { ...audit };

export const allContracts = { ...policyContracts, ...storageContracts, ...auditContracts };
