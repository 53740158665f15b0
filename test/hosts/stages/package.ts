import { doctorFinding } from './doctor.ts';
import { finding, sh, type Stage } from './stage.ts';

const timeoutMs = 40 * 60_000;
const startFeature = 'atoll install';

/**
 * The Debian package of a release on a machine without Node.js, and a systemd service made with it. Further stages
 * examine that service's platform.
 */
export const debianPackage: Stage = {
  name: 'package',
  starts: startFeature,
  async run(scene) {
    const unpacked = await sh(
      scene,
      `for name in node npm gcc; do ! command -v $name || exit 9; done
       apt-get install --yes ${scene.debianPackage} && cd / && atoll --version`,
      timeoutMs,
    );
    const found = [
      finding(
        'the Debian package, without Node.js and compilers',
        unpacked.exitCode === 0,
        unpacked.exitCode === 0 ? (unpacked.output.trim().split('\n').at(-1) ?? '') : unpacked.output,
      ),
    ];
    const doctor = await sh(scene, 'cd /; atoll doctor --json 2>/dev/null', timeoutMs);
    const installed = await sh(
      scene,
      `cd /; atoll install && systemctl is-enabled atoll && systemctl show --property=ActiveState,Type,StatusText atoll
       journalctl --unit=atoll --output=cat | grep --fixed-strings --count "$(cat ${scene.dataDir}/api-key)" | sed s/^/keys=/`,
      timeoutMs,
    );
    const { output } = installed;
    const serves = /^enabled$/m.test(output) && /^ActiveState=active$/m.test(output) && /^Type=notify$/m.test(output);
    return [
      ...found,
      doctorFinding(doctor.exitCode, doctor.output),
      finding(startFeature, serves, serves ? (/^StatusText=(.*)$/m.exec(output)?.[1] ?? '') : output),
      finding('the service’s journal has no key', serves && /^keys=0$/m.test(output), serves ? '' : output),
    ];
  },
};
