/** The values that Docker defines for every build on this machine. */
const platform = {
  TARGETPLATFORM: `linux/${process.arch === 'arm64' ? 'arm64' : 'amd64'}`,
  TARGETOS: 'linux',
  TARGETARCH: process.arch === 'arm64' ? 'arm64' : 'amd64',
};
/** Arguments that Docker defines before the first stage and in every stage, by name. */
export const platformArgs: Record<string, string> = {
  ...platform,
  BUILDPLATFORM: platform.TARGETPLATFORM,
  BUILDOS: platform.TARGETOS,
  BUILDARCH: platform.TARGETARCH,
  TARGETVARIANT: '',
};
