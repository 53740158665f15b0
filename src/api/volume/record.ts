/** A volume of a team. */
export type VolumeRecord = {
  volumeId: string;
  teamId: string;
  /** Where its content is. */
  nodeId: string;
  name: string;
  sizeMiB: number;
  createdAtUs: number;
};
