import type { TeamMetric } from '../../../protocol/api/metrics.ts';
import { useRead } from '../../api/hooks.ts';
import { useTeam } from '../../api/session.tsx';
import { Empty } from '../../parts/bits.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card, Page } from '../../parts/page.tsx';
import { LimitsCard } from './limits-card.tsx';
import { Plot } from '../../parts/plot.tsx';

const daySeconds = 24 * 3600;
const everyMs = 30_000;

/** How many sandboxes a team runs and starts. */
export function Usage() {
  const { teamID } = useTeam();
  const minute = Math.floor(Date.now() / 60_000) * 60;
  const metrics = useRead<TeamMetric[]>(`/teams/${teamID}/metrics`, {
    query: { start: minute - daySeconds, end: minute + 60 },
    every: everyMs,
  });
  return (
    <Page title="Usage" about="What the team may, and what it did in the last 24 hours">
      <LimitsCard />
      <Loaded of={metrics}>
        {samples =>
          samples.length === 0 ? (
            <div className="table-wrap">
              <Empty title="Nothing was counted yet">
                <p>The first numbers come a minute after the first sandbox.</p>
              </Empty>
            </div>
          ) : (
            <div className="columns">
              <Card title="Sandboxes at a time">
                <div className="body">
                  <Plot
                    title="Sandboxes at a time"
                    times={samples.map(({ timestampUnix }) => timestampUnix)}
                    series={[
                      {
                        name: 'At most',
                        values: samples.map(({ concurrentSandboxes }) => concurrentSandboxes),
                        format: value => String(Math.round(value * 10) / 10),
                      },
                    ]}
                  />
                </div>
              </Card>
              <Card title="Starts a minute">
                <div className="body">
                  <Plot
                    title="Starts a minute"
                    times={samples.map(({ timestampUnix }) => timestampUnix)}
                    series={[
                      {
                        name: 'Starts',
                        values: samples.map(({ sandboxStartRate }) => sandboxStartRate * 60),
                        format: value => value.toFixed(1),
                      },
                    ]}
                  />
                </div>
              </Card>
            </div>
          )
        }
      </Loaded>
    </Page>
  );
}
