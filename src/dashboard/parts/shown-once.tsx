import { Code } from '../code/code.tsx';
import { Dialog } from './dialog.tsx';

/** A newly made secret. It is shown only this once. */
export function ShownOnce({ title, text, onClose }: { title: string; text: string; onClose: () => void }) {
  return (
    <Dialog title={title} onClose={onClose}>
      <Code text={text} />
      <p className="muted">It is shown this once and kept nowhere in this form.</p>
      <footer>
        <button type="button" className="button primary" onClick={onClose}>
          I have kept it
        </button>
      </footer>
    </Dialog>
  );
}
