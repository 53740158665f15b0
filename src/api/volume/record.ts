/** A volume that is to be written. */
export type NewVolume = {
  volumeId: string;
  teamId: string;
  /** Where its content is. */
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
  /** Which state of the content it is: `VolumeState.changedAtMs` of its machine, in microseconds. */
  changeUs: number;
};

/** A volume of a team. */
export type VolumeRecord = NewVolume & {
  /** The machine that its content goes to now: nobody uses it meanwhile. */
  movingTo: string | null;
  /** The newest copy in the store. */
  copy: VolumeCopy | null;
};
