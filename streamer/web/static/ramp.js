// The colours of the heat map, read from the style sheet so that they follow its theme.

const STOPS = 5;
const LEVELS = 64;

const parse = (hex) => [1, 3, 5].map((place) => parseInt(hex.trim().slice(place, place + 2), 16));

export class Ramp {
  constructor() {
    const style = getComputedStyle(document.documentElement);
    const stops = Array.from({ length: STOPS }, (_, place) => parse(style.getPropertyValue(`--ramp-${place}`)));
    this.colours = Array.from({ length: LEVELS }, (_, level) => {
      const at = (level / (LEVELS - 1)) * (STOPS - 1);
      const below = Math.min(Math.floor(at), STOPS - 2);
      const mix = stops[below].map((one, part) => one + (stops[below + 1][part] - one) * (at - below));
      return `rgb(${mix.map(Math.round).join(" ")})`;
    });
  }

  // Logarithmic: 600 to 1,200 users is the same distance as 6,000 to 12,000.
  colour(value, least, most) {
    const share = Math.log(Math.max(value, least) / least) / Math.log(most / least);
    return this.colours[Math.min(LEVELS - 1, Math.floor(share * LEVELS))];
  }

  paint(canvas) {
    const context = canvas.getContext("2d");
    const width = canvas.width / LEVELS;
    this.colours.forEach((colour, level) => {
      context.fillStyle = colour;
      context.fillRect(Math.floor(level * width), 0, Math.ceil(width) + 1, canvas.height);
    });
  }
}
