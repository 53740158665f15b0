const themes = ['system', 'light', 'dark'] as const;
/** `system` follows the machine's theme. */
type Theme = (typeof themes)[number];
const key = 'atoll.theme';

/** The theme that was chosen in this browser. */
export function rememberedTheme(): Theme {
  const kept = localStorage.getItem(key);
  return themes.find(theme => theme === kept) ?? 'system';
}

/** Shows a theme and keeps the choice. */
export function showTheme(theme: Theme): void {
  if (theme === 'system') {
    delete document.documentElement.dataset['theme'];
    localStorage.removeItem(key);
  } else {
    document.documentElement.dataset['theme'] = theme;
    localStorage.setItem(key, theme);
  }
}

/** The theme after this one. */
export const nextTheme = (theme: Theme): Theme => themes[(themes.indexOf(theme) + 1) % themes.length] ?? 'system';
