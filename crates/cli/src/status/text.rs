//! Small texts of the status.

/// A time in seconds, with units.
pub(super) fn seconds(seconds: u64) -> String {
    let (days, hours, minutes, rest) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..86_400 => format!("{hours}:{minutes:02}:{rest:02}"),
        _ => format!("{days} d {hours}:{minutes:02}:{rest:02}"),
    }
}

/// A PSN as configuration and captures write it.
pub(super) fn psn(psn: Option<u32>) -> String {
    psn.map_or_else(|| "unknown".to_owned(), |psn| format!("{psn:#08x}"))
}

/// A bar of up to `width` cells for `value` of `full`, in eighths of a cell.
pub(super) fn bar(value: u32, full: u32, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let all = width as u64 * 8;
    let shown = (u64::from(value) * all / u64::from(full.max(1))).min(all);
    let shown = if value > 0 { shown.max(1) } else { 0 };
    "█".repeat((shown / 8) as usize) + EIGHTHS[(shown % 8) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_points_and_bars() {
        assert_eq!([0, 59, 60, 3_661, 90_061].map(seconds), ["0 s", "59 s", "0:01:00", "1:01:01", "1 d 1:01:01"]);
        assert_eq!([psn(None), psn(Some(0xfff0))], ["unknown", "0x00fff0"]);
        assert_eq!([0, 1, 50, 100, 900].map(|value| bar(value, 100, 4)), ["", "▏", "██", "████", "████"]);
        assert_eq!(bar(u32::MAX, 0, 2), "██");
    }
}
