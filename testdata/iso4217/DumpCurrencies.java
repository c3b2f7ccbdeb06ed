import java.util.Comparator;
import java.util.Currency;

/**
 * Prints every currency java.util.Currency knows: code, numeric code, fraction
 * digits (-1: none defined), English name. Made jdk-currencies.tsv by
 *
 *   java DumpCurrencies.java > jdk-currencies.tsv
 *
 * The JDK lists historic currencies too. projection/event/currency_test.go names
 * the reason for each code on which the two differ.
 */
class DumpCurrencies {
    public static void main(String[] args) {
        System.out.println("# java.util.Currency of " + System.getProperty("java.vendor") + " OpenJDK "
                + System.getProperty("java.runtime.version"));
        System.out.println("# code\tnumeric\tdigits\tname");
        Currency.getAvailableCurrencies().stream()
                .sorted(Comparator.comparing(Currency::getCurrencyCode))
                .forEach(c -> System.out.printf("%s\t%03d\t%d\t%s%n", c.getCurrencyCode(), c.getNumericCode(),
                        c.getDefaultFractionDigits(), c.getDisplayName(java.util.Locale.ENGLISH)));
    }
}
