/** A named line of a plot. */
export type Line = { name: string; points: { x: number; y: number }[] };

const width = 640;
const height = 320;
const margin = { left: 64, right: 150, top: 40, bottom: 44 };
const colours = ['#2563eb', '#dc2626', '#059669', '#d97706', '#7c3aed', '#475569'];
const ticks = 5;

/** A line plot as a self-contained SVG. Both axes start at zero, so that growth looks as large as it is. */
export function plot(options: { title: string; xLabel: string; yLabel: string; lines: Line[] }): string {
  const points = options.lines.flatMap(line => line.points);
  const xMax = niceMaximum(Math.max(...points.map(point => point.x)));
  const yMax = niceMaximum(Math.max(...points.map(point => point.y)));
  const x = (value: number) => margin.left + (value / xMax) * (width - margin.left - margin.right);
  const y = (value: number) => height - margin.bottom - (value / yMax) * (height - margin.top - margin.bottom);
  const text = (px: number, py: number, content: string, attributes = '') =>
    `<text x="${px.toFixed(1)}" y="${py.toFixed(1)}" ${attributes}>${content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</text>`;
  const grid = Array.from({ length: ticks + 1 }, (_, index) => index / ticks).flatMap(share => [
    `<line x1="${margin.left}" x2="${width - margin.right}" y1="${y(share * yMax)}" y2="${y(share * yMax)}" stroke="#8884"/>`,
    text(margin.left - 8, y(share * yMax) + 4, format(share * yMax), 'text-anchor="end"'),
    text(x(share * xMax), height - margin.bottom + 18, format(share * xMax), 'text-anchor="middle"'),
  ]);
  const drawn = options.lines.flatMap((line, index) => {
    const colour = colours[index % colours.length];
    const path = line.points
      .map((point, position) => `${position ? 'L' : 'M'}${x(point.x).toFixed(1)} ${y(point.y).toFixed(1)}`)
      .join('');
    return [
      `<path d="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      ...line.points.map(
        point => `<circle cx="${x(point.x).toFixed(1)}" cy="${y(point.y).toFixed(1)}" r="3" fill="${colour}"/>`,
      ),
      text(width - margin.right + 12, margin.top + 8 + index * 18, line.name, `fill="${colour}"`),
    ];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="#64748b">`,
    text(margin.left, 22, options.title, 'font-size="15" font-weight="600"'),
    ...grid,
    ...drawn,
    text((margin.left + width - margin.right) / 2, height - 8, options.xLabel, 'text-anchor="middle"'),
    `<g transform="translate(14 ${height / 2}) rotate(-90)">${text(0, 0, options.yLabel, 'text-anchor="middle"')}</g>`,
    '</svg>\n',
  ].join('\n');
}

function niceMaximum(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map(step => step * power).find(step => step >= value) ?? value;
}

function format(value: number): string {
  return value >= 1000 ? `${+(value / 1000).toFixed(1)}k` : String(+value.toFixed(value < 10 ? 2 : 0));
}
