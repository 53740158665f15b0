import type { ShownSettings } from '../../../protocol/api/installation.ts';
import { useRead } from '../../api/hooks.ts';
import { Empty } from '../../parts/bits.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card, Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';

type Setting = ShownSettings['settings'][number];

/** The settings that the platform was started with, and their sources. Secrets are hidden before they get here. */
export function Settings() {
  const shown = useRead<ShownSettings>('/admin/settings', { personal: true });
  return (
    <Page
      title="Settings"
      about="What the platform was started with"
      actions={
        <a className="button" href="/docs/configuration.html" target="_blank" rel="noreferrer">
          What each means
        </a>
      }
    >
      <Loaded of={shown}>
        {({ file, settings }) => {
          const isSet = ({ source }: Setting) => source !== 'default';
          return (
            <>
              <Card title="Set">
                <SettingTable label="Settings that are set" rows={settings.filter(isSet)} file={file} />
              </Card>
              <Card title="Defaults">
                <SettingTable label="Defaults" rows={settings.filter(setting => !isSet(setting))} file={file} />
              </Card>
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

function SettingTable({ label, rows, file }: { label: string; rows: Setting[]; file: string }) {
  return (
    <Table
      label={label}
      rows={rows}
      keyOf={({ name }) => name}
      empty={
        <Empty title="None">
          <p>
            Set some in the environment, or in <span className="mono">{file}</span>; they hold from the next start on.
          </p>
        </Empty>
      }
      columns={[
        { name: 'Setting', of: ({ name }) => <span className="mono">{name}</span> },
        {
          name: 'Value',
          of: ({ value }) =>
            value === null ? <span className="muted">not set</span> : <span className="mono wrap">{value}</span>,
        },
        {
          name: 'From',
          of: ({ source }) => <span title={source === 'settings file' ? file : undefined}>{source}</span>,
        },
      ]}
    />
  );
}
