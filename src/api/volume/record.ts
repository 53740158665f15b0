/** A volume to write. */
export type NewVolume = {
  volumeId: string;
  teamId: string;
  /** The machine of its content. */
  nodeId: string;
  name: string;
  sizeMiB: number;
  createdAtUs: number;
};

/** A copy of a volume in the store of the cluster. */
type VolumeCopy = {
  /** Its name in the store. */
  copyId: string;
  /** When it was begun. */
  copiedAtUs: number;
  /** The state of the content in it: `VolumeState.changedAtMs` of its machine, in microseconds. */
  changeUs: number;
};

/** A volume of a team. */
export type VolumeRecord = NewVolume & {
  /** The machine to which its content is moving: nobody uses it meanwhile. */
  movingTo: string | null;
  /** The newest copy in the store. */
  copy: VolumeCopy | null;
};
