/** docs/metrics.md, alerts, dashboard and runbooks speak of the same metrics: one that nobody defines would never fire. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { at, list, manifests, named, root } from '../support/manifests.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');

interface Metric {
  readonly type: string;
  readonly labels: readonly string[];
}

const words = (text: string) => text.split(',').map((word) => word.trim()).filter(Boolean);
/** Those that every metric is scraped with, and what a histogram's buckets have. */
const always = ['service', 'instance', 'pod', 'namespace', 'le'];
/** Of the usual ones that every process has, those that are asked for here. */
const usual = ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'process_start_time_seconds', 'nodejs_eventloop_lag_p99_seconds'];
const written = [...read('docs/metrics.md').matchAll(/^\| `(\w+)` \| (\w+) \|([^|]*)\|/gm)].map(([, name, type, labels]): [string, Metric] => [name!, { type: type!, labels: words(labels!) }]);
const metrics = new Map<string, Metric>([...written, ...usual.map((name): [string, Metric] => [name, { type: name.endsWith('_total') ? 'counter' : 'gauge', labels: [] }])]);

const rules = list(named(manifests.production, 'PrometheusRule', 'asset-exchange'), 'spec.groups').flatMap((group) => list(group, 'rules'));
const dashboard = JSON.parse(read('deploy/kubernetes/components/monitoring/exchange-dashboard.json')) as unknown;
const panels = list(dashboard, 'panels');
const queries = [
  ...rules.map((rule) => [String(rule['alert']), String(rule['expr'])] as const),
  ...panels.flatMap((panel) => list(panel, 'targets').map((target) => [String(panel['title']), String(target['expr'])] as const)),
];

/** The metric behind a name in a query, when it is defined: a histogram is asked by its parts. */
function metricOf(name: string): Metric | undefined {
  const histogram = metrics.get(name.replace(/_(bucket|count|sum)$/, ''));
  return /_(bucket|count|sum)$/.test(name) && histogram?.type === 'histogram' ? histogram : metrics.get(name)?.type === 'histogram' ? undefined : metrics.get(name);
}

describe('metrics', () => {
  test('are defined once each, and named as is usual: a counter ends in _total, nothing else does', () => {
    expect(written.length).toBe(read('docs/metrics.md').split('\n').filter((line) => line.startsWith('| `')).length);
    expect(new Set(metrics.keys()).size).toBe(written.length + usual.length);
    for (const [name, { type }] of metrics) expect(name.endsWith('_total'), name).toBe(type === 'counter');
  });

  test.each(queries)('%s asks for metrics and labels that are defined: %s', (_title, query) => {
    const names = query.match(/\b(aex|process|nodejs)_\w+/g) ?? [];
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) expect(metricOf(name), name).toBeDefined();
    const known = [...always, ...names.flatMap((name) => metricOf(name)?.labels ?? [])];
    const grouped = [...query.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels]) => labels!.split(',').map((label) => label.trim()));
    const selected = [...query.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map(([, label]) => label!);
    for (const label of [...grouped, ...selected]) expect(known, label).toContain(label);
  });

  test('every metric of ours is on the dashboard or in an alert', () => {
    const asked = queries.map(([, query]) => query).join(' ');
    expect([...metrics.keys()].filter((name) => name.startsWith('aex_') && !asked.includes(name)), 'unseen').toEqual([]);
  });
});

describe('an alert', () => {
  test.each(rules.map((rule) => [String(rule['alert']), rule] as const))('%s has a severity, says what is wrong, and has a runbook', (name, rule) => {
    expect(['page', 'ticket']).toContain(at(rule, 'labels.severity'));
    expect(at(rule, 'annotations.summary')).toEqual(expect.any(String));
    expect(at(rule, 'annotations.runbook_url')).toBe(`docs/kubernetes.md#${name.toLowerCase()}`);
    expect(read('docs/kubernetes.md').split('\n')).toContain(`### ${name}`);
  });

  test('no runbook is of an alert that there is not', () => {
    const headings = [...read('docs/kubernetes.md').matchAll(/^### (Exchange\w+)$/gm)].map(([, name]) => name);
    expect(headings.sort()).toEqual(rules.map(({ alert }) => alert).sort());
  });
});
